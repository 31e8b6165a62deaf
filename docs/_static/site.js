// Saved pages send their height; pages with frames get the width of the window.
addEventListener("DOMContentLoaded", () => {
  const frames = [...document.querySelectorAll("iframe.fmviz")];
  document.body.classList.toggle("wide", frames.length > 0);
  addEventListener("message", ({ data, source }) => {
    const frame = frames.find(({ contentWindow }) => contentWindow === source);
    if (frame && data?.fmvizHeight) frame.style.height = `${data.fmvizHeight}px`;
  });
  // Loaded now, they cannot send before there is a listener.
  frames.forEach((frame) => (frame.src = frame.dataset.src));
  // The theme omits the level of the headings of its sidebar.
  document.querySelectorAll(".caption[role=heading]").forEach((caption) => (caption.ariaLevel = "2"));
});
