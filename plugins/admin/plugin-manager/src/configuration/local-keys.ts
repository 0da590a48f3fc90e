import { type ConfigTree, get, isTree, type Plan } from '@svc/core'

// Which keys of the configuration only a person on the machine of the server can change.

/** Sections of plugins: whether they come with svc. */
export interface SectionOwners {
  /** The sections by length, longest first. */
  readonly sections: readonly { readonly keys: readonly string[]; readonly isOurs: boolean }[]
  /** Sections of instances, with the types that come with svc. */
  readonly instances: readonly { readonly keys: readonly string[]; readonly ours: ReadonlySet<string> }[]
}

const CODE = 'it names code'
const COMMAND = 'it names a command'
const FOLDER = 'it names a file or folder'
const VARIABLE = 'it names a variable of the environment'
const ACCESS = 'it decides who has access'
const TARGET = 'credentials may be sent there'
const NETWORK = 'it decides which addresses can be reached'

/** Keys and all below them. `*` is one key. */
const LOCAL: readonly (readonly [key: string, reason: string])[] = [
  ['plugins', CODE],
  ['isolation', CODE],
  ['workflows.code', CODE],
  ['workflows.writable_by_tools', CODE],
  ['teams.writable_by_tools', CODE],
  ['tools.git.trust_repositories', CODE],
  ['providers.*.package', CODE],
  ['providers.*.export', CODE],
  ['providers.*.options', CODE],
  ['mcp.clients', COMMAND],
  ['mcp.allow_stdio_over_http', COMMAND],
  ['acp.mcp_servers', COMMAND],
  ['tools.shell', COMMAND],
  ['store', FOLDER],
  ['server.ssl', FOLDER],
  ['server.host', NETWORK],
  ['server.port', NETWORK],
  ['server.cors', ACCESS],
  ['server.allowed_hosts', ACCESS],
  ['server.trusted_proxies', ACCESS],
  ['workflows.secrets', ACCESS],
  ['secrets', ACCESS],
  ['server.auth', ACCESS],
  ['mcp.server.auth', ACCESS],
]

/** Last words of keys that name such things in any section, so that a new key is refused before anybody lists it. */
const WORDS: readonly (readonly [word: RegExp, reason: string])[] = [
  [/(^|_)(plugins?|packages?|modules?|code|scripts?|import|imports|export)$/, CODE],
  [/(^|_)(commands?|args|arguments|exec|executable|program|shell)$/, COMMAND],
  [/(^|_)(paths?|files?|folders?|dirs?|directory|directories|roots?|socket|cwd|cert)$/, FOLDER],
  [/(^|_)env$/, VARIABLE],
  // a provider sends the key of a default variable, even if its entry names none
  [/(^|_)ur[il]s?$/, TARGET],
  [/^(allow|allow_.*|allowed_.*)$/, NETWORK],
]

/** Why only a person on the machine can change a key; undefined if a client can. The first configuration that has an entry decides its type. */
export function localReason(keys: readonly string[], configs: readonly ConfigTree[], owners: SectionOwners): string | undefined {
  const listed = LOCAL.find(([key]) => isBelow(keys, key.split('.')))
  if (listed) return listed[1]
  // the name of a section says nothing about its keys: tools.files.max_bytes is a number
  for (const key of keys.slice(sectionLength(keys, owners))) {
    const word = WORDS.find(([pattern]) => pattern.test(key.toLowerCase().replaceAll('-', '_')))
    if (word) return word[1]
  }
  return isForeign(keys, configs, owners) ? 'it belongs to a plugin that does not come with svc, and may name code' : undefined
}

/** Why a new value cannot be set over HTTP: a setting could show a secret, or send it away. */
export const secretReason = (value: unknown): string | undefined =>
  (JSON.stringify(value) ?? '').includes('${secret:') ? 'its value refers to a secret' : undefined

const isBelow = (keys: readonly string[], above: readonly string[]) =>
  above.length <= keys.length && above.every((key, at) => key === '*' || key === keys[at])

const starts = (keys: readonly string[], section: readonly string[]) => section.every((key, at) => keys[at] === key)

/** The number of keys that name the section or its entry. */
function sectionLength(keys: readonly string[], { sections, instances }: SectionOwners): number {
  const many = instances.find(item => starts(keys, item.keys))
  return many ? many.keys.length + 1 : (sections.find(section => starts(keys, section.keys))?.keys.length ?? 0)
}

function isForeign(keys: readonly string[], configs: readonly ConfigTree[], { sections, instances }: SectionOwners): boolean {
  const many = instances.find(item => keys.length > item.keys.length && starts(keys, item.keys))
  if (many) {
    const entry = keys[many.keys.length]!
    const value = configs.map(config => get(config, [...many.keys, entry])).find(found => found !== undefined)
    const type = isTree(value) && value.type !== undefined ? value.type : entry
    // an unknown type is a problem of its own
    return typeof type === 'string' && !many.ours.has(type)
  }
  const owner = sections.find(section => starts(keys, section.keys))
  return owner !== undefined && !owner.isOurs
}

/** The owners of all sections of a plan. */
export function ownersIn({ loaded }: Pick<Plan, 'loaded'>, ours: ReadonlySet<string>): SectionOwners {
  const single = loaded.flatMap(({ name, plugin }) =>
    plugin.section === undefined ? [] : [{ keys: plugin.section.split('.'), isOurs: ours.has(name) }]
  )
  const many = Map.groupBy(
    loaded.filter(({ plugin }) => plugin.instances !== undefined),
    ({ plugin }) => plugin.instances!
  )
  return {
    sections: single.toSorted((a, b) => b.keys.length - a.keys.length),
    instances: [...many].map(([section, of]) => ({
      keys: section.split('.'),
      ours: new Set(of.flatMap(({ name, plugin }) => (ours.has(name) && plugin.type !== undefined ? [plugin.type] : []))),
    })),
  }
}
