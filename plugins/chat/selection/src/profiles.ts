import { randomUUID } from 'node:crypto'
import { link, mkdir, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import {
  asSvcError,
  codeOf,
  type SchemaProblem,
  type Layer,
  type Log,
  nearest,
  readConfigFile,
  schema,
  shownPath,
  type SlotView,
  type SvcError,
  svcHome,
} from '@svc/core'
import type { Mode, Profile, Provider, Tool } from '@svc/core/contracts'
import { notAllowed, profilesInvalid, profilesMissing } from './errors.ts'

/** The profiles of `profiles.yaml`: at least the default one. */
export interface Profiles {
  readonly default: string
  readonly byName: ReadonlyMap<string, Profile>
}

export interface ProfileEntry {
  description?: string
  provider?: string
  model?: string
  temperature?: number
  max_tokens?: number
  system_prompt?: string
  mode?: string
  tools?: string[]
  fallback?: { provider: string; model: string; weight?: number }[]
}
export interface ProfilesFile {
  default: string
  profiles: Record<string, ProfileEntry>
}

const text = { type: 'string', minLength: 1 }
const closed = (properties: object, required: string[] = []) => ({
  type: 'object',
  additionalProperties: false,
  properties,
  required,
})
const candidate = closed({ provider: text, model: text, weight: { type: 'number', exclusiveMinimum: 0 } }, ['provider', 'model'])
const profile = closed({
  description: { type: 'string' },
  provider: text,
  model: text,
  temperature: { type: 'number', minimum: 0, maximum: 1 },
  max_tokens: { type: 'integer', minimum: 1 },
  system_prompt: { type: 'string' },
  mode: text,
  tools: { type: 'array', items: text },
  fallback: { type: 'array', items: candidate },
})
/** The schema of `profiles.yaml`. */
const PROFILES_SCHEMA = schema<ProfilesFile>(
  closed({
    default: { type: 'string', default: 'default' },
    profiles: { type: 'object', additionalProperties: profile, default: { default: {} } },
  })
)

/** The file that the first run writes. */
export const FIRST_PROFILES = `# Profiles of svc: named settings for chats. Switch with POST /api/v1/profile/switch or svc serve --profile <name>.
# Every key is optional; what a profile leaves out is decided by the request, the override or the first configured provider.
default: default

profiles:
  default:
    description: The first configured provider, as it comes
  # careful:
  #   description: A low temperature and a limit on the reply
  #   provider: local
  #   model: local-1
  #   temperature: 0.1
  #   max_tokens: 1024
  #   system_prompt: Answer briefly and say when you are not sure.
  #   mode: review
  #   tools: [read_file, list_directory]
  #   fallback:
  #     - { provider: local, model: local-small }
`

/** The path of the profiles file. */
export interface ProfilesPlace {
  readonly file: string
  /** Whether the configuration names the file. Then it must exist; the file in the svc home is written at the first run. */
  readonly named: boolean
}

export const profilesPlace = ({ profiles_file: file }: { profiles_file?: string }): ProfilesPlace =>
  file === undefined ? { file: join(svcHome(), 'profiles.yaml'), named: false } : { file, named: true }

/** Reads the profiles. Writes a commented default if the svc home has no file yet. Throws the first error of `checkProfiles`. */
export async function readProfiles({ file, named }: ProfilesPlace): Promise<Profiles> {
  const { value, problems } = valueOf(file, await read(file, named ? missing : writeFirst))
  for (const problem of problems) throw problem
  const { default: first, profiles } = value
  return { default: first, byName: new Map(Object.entries(profiles).map(([name, entry]) => [name, profileOf(name, entry)])) }
}

/**
 * All errors of the profiles and of the initial profile: PROFILES_MISSING, PROFILES_INVALID, CONFIG_UNREADABLE, INVALID_VALUE with line and hint.
 * Writes nothing.
 */
export async function checkProfiles({ file, named }: ProfilesPlace, begin?: string): Promise<SvcError[]> {
  try {
    const { value, problems } = valueOf(file, await read(file, named ? missing : async () => FIRST_PROFILES))
    const known = Object.keys(Object(value.profiles))
    return begin === undefined || known.includes(begin) ? problems : [...problems, notAllowed('profile', begin, known)]
  } catch (error) {
    return [asSvcError(error, 'PROFILES_INVALID')]
  }
}

/** The content of a profiles file with its defaults, and its problems. */
export function valueOf(file: string, layer: Pick<Layer, 'value' | 'line'>): { value: ProfilesFile; problems: SvcError[] } {
  const value = structuredClone(layer.value) as unknown as ProfilesFile
  const where = (keys: readonly string[]) => `${shownPath(file)}:${layer.line?.(keys) ?? 1}`
  const found = PROFILES_SCHEMA.check(value)
  const problems = found.map(problem =>
    profilesInvalid(`${problem.path} ${problem.message}`, where(problem.keys), hintOf(problem))
  )
  const { default: first, profiles } = value
  // only a valid list shows that a name is missing
  if (typeof first !== 'string' || Object(profiles) !== profiles || Object.hasOwn(profiles, first)) return { value, problems }
  const [message, known] = [`default names the profile "${first}", which does not exist`, Object.keys(profiles)]
  return { value, problems: [...problems, profilesInvalid(message, where(['default']), `Use one of: ${known.join(', ')}`)] }
}

/** The content of `FIRST_PROFILES`. The unchanged file needs no parser, whose loading would take a tenth of the startup time. */
const FIRST = { default: 'default', profiles: { default: { description: 'The first configured provider, as it comes' } } }

async function read(file: string, first: (file: string) => Promise<string>): Promise<Layer> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return first(file)
    throw error
  })
  return text === FIRST_PROFILES ? { name: shownPath(file), file, value: FIRST } : readConfigFile(file)
}

const missing = async (file: string) => Promise.reject(profilesMissing(shownPath(file)))

async function writeFirst(file: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  // another process can write the same content at the same time
  await begin(file).catch((left: unknown) => {
    if (codeOf(left) !== 'EEXIST') throw left
  })
  return FIRST_PROFILES
}

/** Registers the written file with the file watchers as svc's own, by its stats, because its path can already lead to another file. */
async function begin(file: string): Promise<void> {
  // rename the complete file: another server that starts in this home can read it at any time
  const next = `${file}.${randomUUID()}`
  await using handle = await open(next, 'wx', 0o600)
  try {
    await handle.writeFile(FIRST_PROFILES)
    await link(next, file)
  } finally {
    await rm(next)
  }
  const stats = await handle.stat()
  const { createdFiles } = await import('@svc/runtime')
  createdFiles.set(file, stats)
}

function hintOf(problem: SchemaProblem): string {
  if (problem.keyword !== 'unknown') return 'Fix the value'
  const known = (problem.allowed ?? []) as string[]
  const near = problem.nearest ?? nearest(problem.keys.at(-1) ?? '', known)
  return near ? `did you mean "${near}"?` : `Use one of: ${known.join(', ')}`
}

/** A profile of its entry in the file. */
export function profileOf(name: string, { max_tokens, system_prompt, ...same }: ProfileEntry): Profile {
  return {
    name,
    ...same,
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
    ...(system_prompt === undefined ? {} : { systemPrompt: system_prompt }),
  }
}

/** The configured profile and mode must exist. Modes are known once every plugin is set up. */
export function checkBegin(begin: { profile?: string; mode?: string }, profiles: Profiles, modes: SlotView<Mode>): undefined {
  if (begin.profile !== undefined && !profiles.byName.has(begin.profile))
    throw notAllowed('profile', begin.profile, [...profiles.byName.keys()])
  if (begin.mode !== undefined && !modes.has(begin.mode)) throw notAllowed('mode', begin.mode, modes.names())
  for (const { name, mode } of profiles.byName.values()) {
    if (mode !== undefined && !modes.has(mode)) throw notAllowed(`mode (of profile "${name}")`, mode, modes.names())
  }
}

/** Providers and tools come and go, so an unknown name in a profile is only a warning. */
export function warnOfNames(profiles: Profiles, providers: SlotView<Provider>, tools: SlotView<Tool>, log: Log): void {
  for (const { name: profile, provider, tools: named = [], fallback = [] } of profiles.byName.values()) {
    const missing = {
      providers: [provider, ...fallback.map(item => item.provider)].filter(item => item !== undefined && !providers.has(item)),
      tools: named.filter(item => !tools.has(item)),
    }
    if (missing.providers.length + missing.tools.length > 0)
      log.warn({ profile, missing }, 'a profile names unknown providers or tools')
  }
}
