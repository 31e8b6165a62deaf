// One view of matrices for each place on the page.

const views = new WeakMap();

export default function (component) {
  const { data, parentElement } = component;
  let view = views.get(parentElement);
  if (!view) {
    parentElement.querySelectorAll(".fmviz-matrix-view").forEach((old) => old.remove());
    view = new View(parentElement);
    views.set(parentElement, view);
  }
  view.pick = (cell) => component.setStateValue("cell", cell);
  view.update(decode(data));
  return () => {
    if (parentElement.isConnected || !views.delete(parentElement)) return;
    view.destroy();
  };
}
