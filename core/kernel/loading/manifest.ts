import { readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { lineOf } from '../config/lines.ts'
import { schema, type SchemaProblem } from '../config/schema.ts'
import { SECRET_NAME } from '../config/redaction.ts'
import { messageOf, type SvcError } from '../src/errors.ts'
import { manifestInvalid, manifestNewer, manifestOlder } from './errors.ts'

/** The plugin API version of this host. */
export const API = 1
/** The oldest plugin API version that this host still runs (docs/explanation/plugin-versions.md). */
export const OLDEST_API = 1

/** The `svc` part of a package.json. It is readable before any code of the package runs. */
export interface Manifest {
  readonly api: number
  readonly kind: string
  /**
   * Names by slot, with `*` for names that are only known at run time. `commands` lists command lines without `svc` (`weather
   * now`); the package exports their classes as `COMMANDS` from `./commands`. `routes` maps a name to method, path and scope,
   * `error_formats` to path and header, `console_pages` to title, scope, file, view, place and tools.
   */
  readonly contributes?: Readonly<
    Record<string, readonly string[] | Readonly<Record<string, RouteManifest | ErrorFormatManifest | ConsolePageManifest>>>
  >
  /** Help texts for the first words of its commands: `{ "weather": "Look up the weather" }`. */
  readonly topics?: Readonly<Record<string, string>>
  readonly permissions?: {
    readonly network?: readonly string[]
    readonly env?: readonly string[]
    /** Those of `env` that it works without. A package.json has them as `{ "name": "…", "optional": true }` in `env`. */
    readonly optional_env?: readonly string[]
    readonly read?: readonly string[]
    readonly write?: readonly string[]
    /** Services and slots of other plugins that it uses, by name. A `*` at the end matches the rest. */
    readonly services?: readonly string[]
    /** Single tools that it calls, by name. Unless `services` has `tools`, it sees no others. */
    readonly tools?: readonly string[]
    /** Single providers that it calls, by name. Unless `services` has `providers`, it sees no others. */
    readonly providers?: readonly string[]
    /** Secrets that it reads, by name. It sees no others, in its own process or not. */
    readonly secrets?: readonly string[]
    /** Single spaces of the store that it opens, by name. Unless `services` has `store`, it reaches no others. */
    readonly spaces?: readonly string[]
    /** Hooks of other plugins that it taps: `chat.turn`, `chat.*`. */
    readonly hooks?: readonly string[]
    /** Requests that its isolated commands send to the running server, as `GET /api/v1/tools`. A `*` matches any characters. */
    readonly server?: readonly string[]
    /** Names of its routes without a scope. They serve every client, without a credential. */
    readonly public_routes?: readonly string[]
    /** Headers with other credentials that its auth scheme reads: `authorization`. */
    readonly credential_headers?: readonly string[]
    /**
     * Requests that its pages in the console send, as `GET /notes/*`, with the rights of the person at the console. A `*` matches any
     * characters.
     */
    readonly console?: readonly string[]
  }
  /**
   * For a plugin that is set up once per entry of a section: that section, and the type of its entries. Without such an entry,
   * svc does not import the plugin.
   */
  readonly instances?: { readonly section: string; readonly type: string }
  /** Settings without which it does not start: `tools.pgquery.server`. svc checks them before it installs the plugin. */
  readonly settings?: readonly string[]
  /** `in-process`: its author published it without a run of the test kit in a process of its own. */
  readonly tested?: 'in-process'
  /** The runtime that runs its code, such as `quickjs`. Without it, svc imports the code. */
  readonly runtime?: string
  /** With a runtime: the section of the configuration that it owns, and the JSON Schema of that section. */
  readonly section?: string
  readonly config?: object
}
/** A declared route. An added route that differs from it is rejected. */
export interface RouteManifest {
  readonly method: string
  readonly path: string
  /** The scope that a caller needs. Absent: none, not even a credential. */
  readonly scope?: string
}
/** A declared format of errors. An added format that differs from it is rejected. */
export interface ErrorFormatManifest {
  readonly path: string
  /** The request header without which a request does not match. */
  readonly header?: string
}
/** A declared page of the console. An added page that differs from it is rejected. */
export interface ConsolePageManifest {
  readonly title: string
  readonly scope: string
  /** The file of its app in the folder `console` of the package. Default: `index.html`, unless it is a view. */
  readonly file?: string
  /** The file of its view in the folder `console` of the package: `notes.json`. */
  readonly view?: string
  /** Where the console shows it. Default: `page`. */
  readonly place?: ConsolePlace
  /** For the place `tool_result`: the tools of the plugin whose results it shows. */
  readonly tools?: readonly string[]
}
/** Where the console shows a page: in its navigation, on the overview, as a tab of each run or conversation, or for results of tools. */
export type ConsolePlace = (typeof CONSOLE_PLACES)[number]
/** A package as found. None of its code has run. */
export interface PackageInfo {
  readonly name: string
  readonly version: string
  readonly folder: string
  readonly manifest: Manifest
  /** The entry module, for a package without "exports". */
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
/** Each segment is a word or a parameter; the last can be the rest of the path. Other forms would slow down the router. */
const PATH = '^/(?:(?::[A-Za-z_]\\w*|[\\w.-]+)(?:/|$))*(?:(?<=/)\\*[A-Za-z_]\\w*)?$'
const route = closed(
  {
    method: { type: 'string', pattern: '^[A-Z]+$', patternHint: 'must be a method like GET' },
    path: { type: 'string', pattern: PATH, patternHint: 'must be a path like /notes/:id' },
    scope: { type: 'string', pattern: '^[a-z][a-z_]*$', patternHint: 'must be a scope like read' },
  },
  ['method', 'path']
)
const errorFormat = closed(
  {
    path: { type: 'string', pattern: '^(/[\\w.-]+)+$', patternHint: 'must be a path like /v1, without parameters' },
    header: { type: 'string', pattern: '^[a-z0-9-]+$', patternHint: 'must be the name of a header in lower case' },
  },
  ['path']
)
export const CONSOLE_PLACES = ['page', 'overview', 'run', 'conversation', 'tool_result'] as const
const consolePageFields = closed(
  {
    title: {
      type: 'string',
      pattern: '^[\\p{L}\\p{N}](?:[\\p{L}\\p{N} .,&()+-]{0,38}[\\p{L}\\p{N})])?$',
      patternHint: 'must have at most 40 letters, digits and blanks',
    },
    scope: { enum: ['chat', 'read', 'workflows', 'tools', 'admin'] },
    file: {
      type: 'string',
      pattern: '^(?:[\\w-][\\w.-]*/)*[\\w-][\\w.-]*\\.html$',
      patternHint: 'must be a path like admin/index.html',
    },
    view: {
      type: 'string',
      pattern: '^(?:[\\w-][\\w.-]*/)*[\\w-][\\w.-]*\\.json$',
      patternHint: 'must be a path like notes.json',
    },
    place: { enum: CONSOLE_PLACES },
    tools: {
      type: 'array',
      items: { type: 'string', pattern: '^[\\w.-]{1,128}$', patternHint: 'must be the name of one tool' },
      minItems: 1,
      maxItems: 50,
      uniqueItems: true,
    },
  },
  ['title', 'scope']
)
/** A page is an app or a view. Only one that shows results of tools names tools. */
const consolePage = {
  ...consolePageFields,
  dependencies: { view: { properties: { file: false } } },
  if: { properties: { place: { const: 'tool_result' } }, required: ['place'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['tools'] },
  else: { properties: { tools: false } },
}
/** Command names appear in help and in completion scripts. */
const command = {
  type: 'string',
  pattern: '^\\s*[A-Za-z0-9][\\w-]*([\\s:]+[A-Za-z0-9][\\w-]*)*\\s*$',
  patternHint: 'must be words of letters, digits, "-" and "_", separated by a space or ":"',
}
const secretName = {
  type: 'string',
  pattern: SECRET_NAME.source,
  patternHint: 'must be the name of one secret: a letter, then up to 63 letters, digits, "_" and "-"',
}
const serverRequest = {
  type: 'string',
  pattern: '^(GET|POST|PUT|PATCH|DELETE) /[^\\s?#]*$',
  patternHint: 'must be a method and a path, like GET /api/v1/tools',
}
const pageName = { pattern: '^[a-z][a-z0-9_-]{0,63}$' }
const manifestSchema = schema<Manifest>({
  // A plugin whose code is imported declares these in its code.
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
          error_formats: { type: 'object', additionalProperties: errorFormat },
          console_pages: { type: 'object', propertyNames: pageName, additionalProperties: consolePage },
        },
        additionalProperties: texts,
      },
      topics: { type: 'object', additionalProperties: word },
      permissions: closed({
        network: texts,
        env: { type: 'array', items: { anyOf: [word, closed({ name: word, optional: { const: true } }, ['name', 'optional'])] } },
        read: texts,
        write: texts,
        services: texts,
        tools: texts,
        providers: texts,
        secrets: { type: 'array', items: secretName },
        spaces: texts,
        hooks: texts,
        server: { type: 'array', items: serverRequest },
        public_routes: texts,
        credential_headers: texts,
        console: { type: 'array', items: serverRequest },
      }),
      instances: closed({ section: word, type: word }, ['section', 'type']),
      settings: texts,
      tested: { enum: ['in-process'] },
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

/** Returns why this host cannot run a plugin of this API version. The schema reports a value that is not a number. */
function unsupportedApi(name: string, api: number, where: () => string): SvcError | undefined {
  if (!Number.isInteger(api)) return undefined
  if (api > API) return manifestNewer(name, api, API, where())
  return api < OLDEST_API ? manifestOlder(name, api, OLDEST_API, where()) : undefined
}

/** Reads and validates a package.json. Throws MANIFEST_INVALID, MANIFEST_NEWER, MANIFEST_OLDER. */
export async function readManifest(file: string): Promise<PackageInfo> {
  // A start reads thirty small files. Through the thread pool they take ten times as long.
  const text = readFileSync(file, 'utf8')
  const pkg = parse(text, file)
  const name = typeof pkg.name === 'string' ? pkg.name : basename(dirname(file))
  if (!pkg.svc)
    throw manifestInvalid(name, 'its package.json has no "svc" part', basename(file), 'Add "svc": { "api": 1, "kind": "tool" }')
  const strange = unsupportedApi(name, pkg.svc.api, () => placeOf(file, text, ['svc', 'api']))
  if (strange) throw strange
  const problems = manifestSchema.check(structuredClone(pkg.svc))
  if (problems.length > 0) throw schemaProblems(name, problems, text, file)
  const claim = forbiddenClaim(pkg.svc) ?? foreignToolClaim(pkg.svc)
  if (claim) throw manifestInvalid(name, claim.what, placeOf(file, text, claim.keys), claim.hint)
  return {
    name,
    version: pkg.version ?? '0.0.0',
    folder: dirname(file),
    manifest: withOptionalNames(pkg.svc),
    ...(pkg.exports ? {} : { main: pkg.main ?? 'index.js' }),
  }
}

/** Separates the names of the variables from what the manifest says about them. */
function withOptionalNames(manifest: Manifest): Manifest {
  const { env, ...others } = manifest.permissions ?? {}
  if (env === undefined || env.every(one => typeof one === 'string')) return manifest
  const entries = env as readonly (string | { readonly name: string })[]
  const optional = entries.flatMap(one => (typeof one === 'string' ? [] : [one.name]))
  const names = entries.map(one => (typeof one === 'string' ? one : one.name))
  return { ...manifest, permissions: { ...others, env: names, optional_env: optional } }
}

const OWN_SECTION = /^tools\.[^.]+$/

/**
 * Reports claims that are forbidden for code that must never run in this process: the module of a command is imported, and
 * other sections contain keys of other plugins.
 */
function forbiddenClaim({ runtime, section, contributes }: Manifest) {
  if (runtime === undefined) return undefined
  if (contributes?.commands !== undefined) {
    const what = `it runs in "${runtime}", so it cannot declare commands, which svc imports`
    return { what, keys: ['svc', 'contributes', 'commands'], hint: 'Remove "commands" or "runtime"' }
  }
  if (section === undefined || OWN_SECTION.test(section)) return undefined
  const what = `it runs in "${runtime}", so its section must be "tools.<name>", was "${section}"`
  return { what, keys: ['svc', 'section'], hint: 'Choose a section like tools.shout' }
}

/** A page shows results of tools of its own plugin only. */
function foreignToolClaim(manifest: Manifest) {
  for (const [page, { tools = [] }] of consolePagesOf(manifest)) {
    const tool = tools.find(name => !declares(manifest, 'tools', name))
    if (tool === undefined) continue
    const what = `its page "${page}" shows results of the tool "${tool}", which the plugin does not declare`
    const keys = ['svc', 'contributes', 'console_pages', page, 'tools']
    return { what, keys, hint: `Declare "${tool}" in contributes.tools, or remove it from the page` }
  }
  return undefined
}

function parse(text: string, file: string): PackageJson {
  try {
    return Object(JSON.parse(text)) as PackageJson
  } catch (error) {
    const line = /line (\d+)/.exec(messageOf(error))?.[1] ?? text.split('\n').length
    const what = `its package.json is not valid JSON: ${messageOf(error)}`
    throw manifestInvalid(basename(dirname(file)), what, `${basename(file)}:${line}`, 'Fix the file')
  }
}

/** The place of a key, as `package.json:12`. */
export async function placeIn(folder: string, keys: readonly string[]): Promise<string> {
  const file = join(folder, 'package.json')
  return placeOf(file, await readFile(file, 'utf8').catch(() => ''), keys)
}

const placeOf = (file: string, text: string, keys: readonly string[]) => `${basename(file)}:${lineOf(text, keys) ?? 1}`

function schemaProblems(name: string, problems: SchemaProblem[], text: string, file: string) {
  const where = placeOf(file, text, ['svc', ...problems[0]!.keys])
  const near = problems.map(f => f.nearest).find(Boolean)
  const hint = near ? `did you mean "${near}"?` : 'See docs/guides/package-a-plugin.md for the keys of a manifest'
  return manifestInvalid(name, problems.map(f => `svc.${f.path || '(all)'} ${f.message}`).join('\n'), where, hint)
}

/** The declared names by slot. Commands are not a slot. */
export const slotsOf = ({ contributes = {} }: Manifest): [slot: string, names: readonly string[]][] =>
  Object.entries(contributes).flatMap(([slot, names]) => (slot === 'commands' ? [] : [[slot, namesOf(names)]]))

const namesOf = (names: NonNullable<Manifest['contributes']>[string]) => (isList(names) ? names : Object.keys(names))
const isList = (names: NonNullable<Manifest['contributes']>[string]): names is readonly string[] => Array.isArray(names)

/** The routes that a manifest declares. */
export const routesOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): [name: string, route: RouteManifest][] =>
  Object.entries((contributes.routes ?? {}) as Record<string, RouteManifest>)

/** The formats of errors that a manifest declares. */
export const errorFormatsOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): ErrorFormatManifest[] =>
  Object.values((contributes.error_formats ?? {}) as Record<string, ErrorFormatManifest>)

/** The pages of the console that a manifest declares. */
export const consolePagesOf = ({
  contributes = {},
}: Pick<Manifest, 'contributes'>): [name: string, page: ConsolePageManifest][] =>
  Object.entries((contributes.console_pages ?? {}) as Record<string, ConsolePageManifest>)

/** Whether a manifest allows the plugin to add `name` to a slot. */
export const declares = (manifest: Manifest, slot: string, name: string): boolean =>
  slotsOf(manifest).some(([item, words]) => item === slot && words.some(word => matchesPattern(word, name)))

/** The data that a manifest declares for an item, or an empty object when it lists only the name. */
export function detailsOf({ contributes = {} }: Manifest, slot: string, name: string): Readonly<Record<string, unknown>> {
  const names = contributes[slot] ?? []
  return isList(names) || !Object.hasOwn(names, name) ? {} : { ...names[name] }
}

/**
 * Whether a name matches a pattern in which `*` stands for any characters. It runs in one pass, because a regular expression
 * with many stars from an untrusted source could take for ever.
 */
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

/** Slots and services of which a plugin can get single items, with the permission that names them. */
const GRANTED_BY_ITEM: Readonly<Record<string, keyof Permissions>> = {
  'slot tools': 'tools',
  'slot providers': 'providers',
  'service store': 'spaces',
  'service counts': 'spaces',
  'service text_index': 'spaces',
  'service secrets': 'secrets',
}

type Permissions = NonNullable<Manifest['permissions']>

/**
 * The names of the items of a slot or service that a plugin can use. Absent: the permissions name no single items of it, or all
 * of it as well. A permission only adds, so that an update cannot widen others by dropping one.
 */
export function grantedItems(permissions: Permissions, what: 'slot' | 'service', name: string): readonly string[] | undefined {
  const { services = [] } = permissions
  const key = GRANTED_BY_ITEM[`${what} ${name}`]
  return key === undefined || services.some(word => matchesPattern(word, name)) ? undefined : permissions[key]
}

/**
 * Whether one of the hosts in a manifest's `network` matches: `api.example.org`, `api.example.org:8443`, `*.example.org`, `*`.
 */
export function matchesHost(declared: readonly string[], host: string): boolean {
  const bare = host.replace(/:\d+$/, '')
  return declared.some(
    item => item === '*' || item === host || item === bare || (item.startsWith('*.') && bare.endsWith(item.slice(1)))
  )
}

/** The key of `exports` for the module with the command classes. */
export const COMMANDS_MODULE = './commands'

/** The declared commands as they are called: `weather now`. */
export const commandsOf = ({ contributes = {} }: Pick<Manifest, 'contributes'>): string[] => {
  const { commands = [] } = contributes
  return (Array.isArray(commands) ? (commands as readonly string[]) : []).map(name =>
    name
      .trim()
      .split(/[\s:]+/)
      .join(' ')
  )
}
