import { fileURLToPath } from 'node:url'

/** The folder of this package; from here, because the bundle is as deep as this file. */
export const PACKAGE_FOLDER: string = fileURLToPath(new URL('..', import.meta.url))

/** Whether this runs from the sources of the repository, where packages have no JavaScript yet that could be copied. */
export const RUNS_SOURCES: boolean = import.meta.url.endsWith('.ts')
