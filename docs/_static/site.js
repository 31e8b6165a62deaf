// Saved pages send their height; pages with frames get the width of the window.
const frames = () => document.querySelectorAll("iframe.fmviz");

addEventListener("message", ({ data, source }) => {
  if (!data?.fmvizHeight) return;
  frames().forEach((frame) => {
    if (frame.contentWindow === source) frame.style.height = `${data.fmvizHeight}px`;
  });
});

addEventListener("DOMContentLoaded", () => document.body.classList.toggle("wide", frames().length > 0));
