import { HOST_PACKAGES, hostPackageFolder } from '@svc/core/config'

/** A package of svc that a plugin set links to. */
export interface GivenPackage {
  readonly name: string
  /** Below the set: `host/core`. */
  readonly path: string
  /** That of this svc. */
  readonly folder: string
}

/** The path below a set of a package that svc gives to plugins. Undefined for other packages. */
export const givenPath = (name: string): string | undefined => PATHS.get(name)

const PATHS: ReadonlyMap<string, string> = new Map(
  HOST_PACKAGES.flatMap(({ name, only }) => (only === 'tests' ? [] : [[name, `host/${name.replace('@svc/', '')}`]]))
)

/** The packages that this svc gives to plugins. */
export const givenPackages = (): GivenPackage[] =>
  [...PATHS].flatMap(([name, path]) => {
    const folder = hostPackageFolder(name)
    return folder === undefined ? [] : [{ name, path, folder }]
  })
