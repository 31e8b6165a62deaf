// Saves the plotly chart of another element of the page as SVG or PNG.
//
// Streamlit does not expose Plotly, so we press the chart's "Download plot" button, with other options and
// with a copy of the layout in colours for white paper: Plotly copies both before the button returns.

const place = (key) => `.st-key-${CSS.escape(key.trim().replace(/[^a-zA-Z0-9_-]/g, "-"))}`;

// Streamlit stores its theme colours only in the template.
const onPaper = (layout) =>
  JSON.parse(JSON.stringify(layout), (name, value) => {
    if (typeof value !== "string" || !/color$/i.test(name)) return value;
    if (/bgcolor/.test(name)) return "#ffffff";
    return /grid|zeroline|tickcolor|linecolor|border/.test(name) ? "#d5dae5" : "#31333f";
  });

function save(key, name, format) {
  const chart = document.querySelector(`${place(key)} .js-plotly-plot`);
  const button = chart && chart.querySelector('.modebar-btn[data-title^="Download plot"]');
  if (!button) return;
  const { layout } = chart;
  const options = chart._context.toImageButtonOptions;
  const template = layout.template && { ...layout.template, layout: onPaper(layout.template.layout || {}) };
  chart.layout = { ...layout, paper_bgcolor: "#ffffff", plot_bgcolor: "#ffffff", template };
  chart._context.toImageButtonOptions = { format, filename: name, scale: format === "png" ? 2 : 1 };
  try {
    button.click();
  } finally {
    chart.layout = layout;
    chart._context.toImageButtonOptions = options;
  }
}

export default function ({ data, parentElement }) {
  const box =
    parentElement.querySelector(".fmviz-picture-buttons") ||
    parentElement.appendChild(document.createElement("div"));
  box.className = "fmviz-picture-buttons";
  box.replaceChildren(
    ...["svg", "png"].map((format) => {
      const button = document.createElement("button");
      button.dataset.format = format;
      button.textContent = `Picture (${format.toUpperCase()})`;
      button.onclick = () => save(data.chart, data.name, format);
      return button;
    }),
  );
}
