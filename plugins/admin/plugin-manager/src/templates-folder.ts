/** The folder of the templates for new plugins. All files of the bundle are at this depth. */
export const TEMPLATES = new URL('../templates/', import.meta.url)
