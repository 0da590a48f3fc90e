/** What npm takes as a name today; nothing that leads out of a folder. */
export const NAME = /^(?:@[a-z0-9-][a-z0-9._-]*\/)?(?!node_modules$|favicon\.ico$)[a-z0-9-][a-z0-9._-]*$/

export const VERSION = /^\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?$/

export const SET_ID = /^(?:[0-9a-z]+-[0-9a-f]{8})?$/

/** Names of what comes with svc. */
export const isOurs = (name: string): boolean => name === 'svc' || name.startsWith('@svc/')

export const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1)

/** A tarball's file in the set: no two plugins have the same. */
export const tarballName = (name: string, version: string): string => `${name.replace('/', '+')}-${version}.tgz`
