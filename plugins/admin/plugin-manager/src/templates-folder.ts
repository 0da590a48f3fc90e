/** Where the templates of new plugins lie; from here, because the bundle is as deep as this file. */
export const TEMPLATES = new URL('../templates/', import.meta.url)
