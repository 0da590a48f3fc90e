/** What a package.json wants beside itself, as far as npm installs it. */
export interface Wishes {
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
}

export const wishesOf = ({ dependencies, optionalDependencies, peerDependencies }: Wishes): Record<string, string> => ({
  ...dependencies,
  ...optionalDependencies,
  ...peerDependencies,
})

/** In words, each dependency of a package.json that is no package of the registry: a folder, a repository, an address. Such a plugin is not installed. */
export const strayDependencies = (pkg: Wishes): string[] =>
  Object.entries(wishesOf(pkg)).flatMap(([name, spec]) => strayWish(name, spec) ?? [])

/** The same of one. A package of the registry under another name is none. */
export const strayWish = (name: string, spec: unknown): string | undefined =>
  typeof spec === 'string' && !spec.startsWith('npm:') && /[:/\\]/.test(spec)
    ? `needs ${name} as ${spec}, which is no package of the registry`
    : undefined
