import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { lineOf } from '../config/lines.ts'
import { schema, type SchemaProblem } from '../config/schema.ts'
import { messageOf, type SvcError } from '../src/errors.ts'
import { manifestInvalid, manifestNewer, manifestOlder } from './errors.ts'

/** The plugin api that this host speaks. */
export const API = 1
/** The oldest plugin api whose plugins it still runs (docs/explanation/plugin-versions.md). */
export const OLDEST_API = 1

/** What a package says of itself in the `svc` part of its package.json, readable before any of its code runs. */
export interface Manifest {
  readonly api: number
  readonly kind: string
  /**
   * Slot → names, with `*` for what is known only at run time. `commands` lists command lines without `svc` (`weather now`), whose classes the package exports
   * as `COMMANDS` from `./commands`; `routes` maps a name to where the route answers and who may ask it.
   */
  readonly contributes?: Readonly<Record<string, readonly string[] | Readonly<Record<string, RouteManifest>>>>
  /** What help says of the first words of its commands: `{ "weather": "Look up the weather" }`. */
  readonly topics?: Readonly<Record<string, string>>
  readonly permissions?: {
    readonly network?: readonly string[]
    readonly env?: readonly string[]
    readonly read?: readonly string[]
    readonly write?: readonly string[]
    /** Services and slots of others that it uses, by name; `*` at the end for more. */
    readonly services?: readonly string[]
    /** Hooks of others that it joins: `chat.turn`, `chat.*`. */
    readonly hooks?: readonly string[]
    /** Names of its routes without a scope: they answer every client, without a credential. */
    readonly public_routes?: readonly string[]
    /** Headers of other credentials that its scheme reads: `authorization`. */
    readonly credential_headers?: readonly string[]
  }
  /** Of a plugin that is set up once per entry of a section: which section, and the type of its entries. Where there is no such entry, nothing of it is imported. */
  readonly instances?: { readonly section: string; readonly type: string }
  /** Which runtime runs its code, `quickjs`; without it the code is imported. */
  readonly runtime?: string
  /** With a runtime: the part of the configuration that it owns, and the JSON Schema that checks it. */
  readonly section?: string
  readonly config?: object
}
/** A route as it is added: what differs is refused. */
export interface RouteManifest {
  readonly method: string
  readonly path: string
  /** What a caller needs; absent: nothing, not even a credential. */
  readonly scope?: string
}
/** A package as found: nothing of it has run. */
export interface PackageInfo {
  readonly name: string
  readonly version: string
  readonly folder: string
  readonly manifest: Manifest
  /** The entry module, where the package has no "exports". */
  readonly main?: string
}

const word = { type: 'string', minLength: 1 }
const texts = { type: 'array', items: word }
const closed = (properties: object, required: string[] = []) => ({
  type: 'object',
  properties,
  required,
  additionalProperties: false,
})
/** Each part is a word or a parameter: paths of other forms take a router long to look at. */
const PATH = '^/(?:(?::[A-Za-z_]\\w*|[\\w.-]+)(?:/|$))*$'
const route = closed(
  {
    method: { type: 'string', pattern: '^[A-Z]+$', patternHint: 'must be a method like GET' },
    path: { type: 'string', pattern: PATH, patternHint: 'must be a path like /notes/:id' },
    scope: { type: 'string', pattern: '^[a-z][a-z_]*$', patternHint: 'must be a scope like read' },
  },
  ['method', 'path']
)
/** The names of commands come into help and into scripts of completion. */
const command = {
  type: 'string',
  pattern: '^\\s*[A-Za-z0-9][\\w-]*([\\s:]+[A-Za-z0-9][\\w-]*)*\\s*$',
  patternHint: 'must be words of letters, digits, "-" and "_" with a blank or ":" between them',
}
const manifestSchema = schema<Manifest>({
  // whose code is imported says these there
  dependencies: { section: ['runtime'], config: ['section'] },
  ...closed(
    {
      api: { type: 'integer', minimum: 1 },
      kind: word,
      contributes: {
        type: 'object',
        properties: {
          commands: { type: 'array', items: command },
          routes: { type: 'object', additionalProperties: route },
        },
        additionalProperties: texts,
      },
      topics: { type: 'object', additionalProperties: word },
      permissions: closed({
        network: texts,
        env: texts,
        read: texts,
        write: texts,
        services: texts,
        hooks: texts,
        public_routes: texts,
        credential_headers: texts,
      }),
      instances: closed({ section: word, type: word }, ['section', 'type']),
      runtime: { type: 'string', pattern: '^[a-z0-9-]+$' },
      section: word,
      config: { type: 'object' },
    },
    ['api', 'kind']
  ),
})

interface PackageJson {
  name?: string
  version?: string
  svc?: Manifest
  main?: string
  exports?: unknown
}

/** Why a plugin of this api cannot run here; what is no number the schema tells. */
function unsupportedApi(name: string, api: number, where: () => string): SvcError | undefined {
  if (!Number.isInteger(api)) return undefined
  if (api > API) return manifestNewer(name, api, API, where())
  return api < OLDEST_API ? manifestOlder(name, api, OLDEST_API, where()) : undefined
}

/** Reads and checks a package.json. Throws MANIFEST_INVALID, MANIFEST_NEWER, MANIFEST_OLDER. */
export async function readManifest(file: string): Promise<PackageInfo> {
  // thirty small files at each start: by way of the thread pool they take ten times as long
  const text = readFileSync(file, 'utf8')
  const pkg = parse(text, file)
  const name = typeof pkg.name === 'string' ? pkg.name : basename(dirname(file))
  if (!pkg.svc)
    throw manifestInvalid(
      name,
      'its package.json has no "svc" part, so it is no plugin',
      basename(file),
      'add "svc": { "api": 1, "kind": "tool" }'
    )
  const strange = unsupportedApi(name, pkg.svc.api, () => placeOf(file, text, ['svc', 'api']))
  if (strange) throw strange
  const faults = manifestSchema.check(structuredClone(pkg.svc))
  if (faults.length > 0) throw schemaProblems(name, faults, text, file)
  const claim = forbiddenClaim(pkg.svc)
  if (claim) throw manifestInvalid(name, claim.what, placeOf(file, text, claim.keys), claim.hint)
  return {
    name,
    version: pkg.version ?? '0.0.0',
    folder: dirname(file),
    manifest: pkg.svc,
    ...(pkg.exports ? {} : { main: pkg.main ?? 'index.js' }),
  }
}

const OWN_SECTION = /^tools\.[^.]+$/

/** What a plugin may not have whose code shall never run in this process: a command's module is imported, and other sections hold other plugins' keys. */
function forbiddenClaim({ runtime, section, contributes }: Manifest) {
  if (runtime === undefined) return undefined
  if (contributes?.commands !== undefined) {
    const what = `it runs in "${runtime}" and adds commands, which would be imported`
    return { what, keys: ['svc', 'contributes', 'commands'], hint: 'take "commands" out, or "runtime"' }
  }
  if (section === undefined || OWN_SECTION.test(section)) return undefined
  const what = `it runs in "${runtime}", and its section must be "tools.<name>", was "${section}"`
  return { what, keys: ['svc', 'section'], hint: 'name a section of its own, like tools.shout' }
}

function parse(text: string, file: string): PackageJson {
  try {
    return Object(JSON.parse(text)) as PackageJson
  } catch (error) {
    const line = /line (\d+)/.exec(messageOf(error))?.[1] ?? text.split('\n').length
    const what = `its package.json is no JSON: ${messageOf(error)}`
    throw manifestInvalid(basename(dirname(file)), what, `${basename(file)}:${line}`, 'fix the file')
  }
}

/** The line of a key, as `package.json:12`. */
export async function placeIn(folder: string, keys: readonly string[]): Promise<string> {
  const file = join(folder, 'package.json')
  return placeOf(file, await readFile(file, 'utf8').catch(() => ''), keys)
}

const placeOf = (file: string, text: string, keys: readonly string[]) => `${basename(file)}:${lineOf(text, keys) ?? 1}`

function schemaProblems(name: string, faults: SchemaProblem[], text: string, file: string) {
  const where = placeOf(file, text, ['svc', ...faults[0]!.keys])
  const near = faults.map(f => f.nearest).find(Boolean)
  const hint = near ? `did you mean "${near}"?` : 'docs/guides/package-a-plugin.md lists the keys of a manifest'
  return manifestInvalid(name, faults.map(f => `svc.${f.path || '(all)'} ${f.message}`).join('\n'), where, hint)
}

/** The names that a manifest declares for each slot; commands are none. */
export const slotsOf = ({ contributes = {} }: Manifest): [slot: string, names: readonly string[]][] =>
  Object.entries(contributes).flatMap(([slot, names]) => (slot === 'commands' ? [] : [[slot, namesOf(names)]]))

const namesOf = (names: NonNullable<Manifest['contributes']>[string]) => (isList(names) ? names : Object.keys(names))
const isList = (names: NonNullable<Manifest['contributes']>[string]): names is readonly string[] => Array.isArray(names)

/** The routes that a manifest declares. */
export const routesOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): [name: string, route: RouteManifest][] =>
  Object.entries((contributes.routes ?? {}) as Record<string, RouteManifest>)

/** Whether a manifest lets the plugin add `name` to a slot. */
export const declares = (manifest: Manifest, slot: string, name: string): boolean =>
  slotsOf(manifest).some(([one, words]) => one === slot && words.some(word => matchesPattern(word, name)))

/** What a manifest says of one thing, beside its name; nothing where it is a name in a list. */
export function detailsOf({ contributes = {} }: Manifest, slot: string, name: string): Readonly<Record<string, unknown>> {
  const names = contributes[slot] ?? []
  return isList(names) || !Object.hasOwn(names, name) ? {} : { ...names[name] }
}

/** Whether a name is this pattern: its own characters, and any others where a `*` stands. In one pass: an expression made of many stars, a stranger's, would take for ever. */
export function matchesPattern(pattern: string, name: string): boolean {
  const [first = '', ...parts] = pattern.split('*')
  const last = parts.pop()
  if (last === undefined) return pattern === name
  const end = name.length - last.length
  if (first.length > end || !name.startsWith(first) || !name.endsWith(last)) return false
  let at = first.length
  for (const part of parts) {
    const found = name.indexOf(part, at)
    if (found < 0 || found + part.length > end) return false
    at = found + part.length
  }
  return true
}

/** Whether one of these, as a manifest's `network` says them, names a host: `api.example.org`, `api.example.org:8443`, `*.example.org`, `*`. */
export function matchesHost(declared: readonly string[], host: string): boolean {
  const bare = host.replace(/:\d+$/, '')
  return declared.some(
    one => one === '*' || one === host || one === bare || (one.startsWith('*.') && bare.endsWith(one.slice(1)))
  )
}

/** The key of `exports` whose module has the classes of the commands. */
export const COMMANDS_MODULE = './commands'

/** The commands that a manifest declares, by the words they are called with, `weather now`. */
export const commandsOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): string[] => {
  const { commands = [] } = contributes
  return (Array.isArray(commands) ? (commands as readonly string[]) : []).map(name =>
    name
      .trim()
      .split(/[\s:]+/)
      .join(' ')
  )
}
