import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { codeOf, type Fault, type Layer, nearest, readConfigFile, schema } from '@svc/core'
import type { Profile } from '@svc/core/contracts'
import { profilesInvalid } from './errors.ts'

/** The profiles of `profiles.yaml`: at least the default one. */
export interface Profiles {
  readonly default: string
  readonly byName: ReadonlyMap<string, Profile>
}

interface ProfileEntry {
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
interface ProfilesFile {
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
/** What `profiles.yaml` may say. */
const PROFILES_SCHEMA = schema<ProfilesFile>(
  closed({
    default: { type: 'string', default: 'default' },
    profiles: { type: 'object', additionalProperties: profile, default: { default: {} } },
  })
)

/** What is written at the first run. */
const FIRST_PROFILES = `# Profiles of svc: named settings for chats. Switch with POST /api/v1/profile/switch or svc serve --profile <name>.
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

/** Reads the profiles; writes a commented default where there is no file yet. Throws PROFILES_INVALID with line and mend. */
export async function readProfiles(file: string): Promise<Profiles> {
  const layer = await read(file)
  const value = structuredClone(layer.value)
  const faults = PROFILES_SCHEMA.check(value)
  if (faults.length > 0) throw faultsError(file, layer, faults)
  const { default: first, profiles } = value as unknown as ProfilesFile
  const byName = new Map(Object.entries(profiles).map(([name, entry]) => [name, profileOf(name, entry)]))
  if (!byName.has(first))
    throw profilesInvalid(
      `default names the profile "${first}", which is not there`,
      place(file, layer, ['default']),
      `one of: ${[...byName.keys()].join(', ')}`
    )
  return { default: first, byName }
}

/** What `FIRST_PROFILES` says: the file as svc wrote it needs no parser, which would take a tenth of a start to load. */
const FIRST = { default: 'default', profiles: { default: { description: 'The first configured provider, as it comes' } } }

async function read(file: string): Promise<Layer> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    if (codeOf(error) === 'ENOENT') return writeFirst(file)
    throw error
  })
  return text === FIRST_PROFILES ? { name: basename(file), file, value: FIRST } : readConfigFile(file)
}

async function writeFirst(file: string): Promise<string> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 })
  // another process may write it at the same moment: the content is the same
  await writeFile(file, FIRST_PROFILES, { mode: 0o600, flag: 'wx' }).catch((left: unknown) => {
    if (codeOf(left) !== 'EEXIST') throw left
  })
  return FIRST_PROFILES
}

const place = (file: string, layer: Layer, keys: readonly string[]) => `${basename(file)}:${layer.line?.(keys) ?? 1}`

function faultsError(file: string, layer: Layer, faults: readonly Fault[]) {
  const [first, ...others] = faults as [Fault, ...Fault[]]
  const lines = [
    `${first.path} ${first.message}`,
    ...others.map(one => `${one.path} ${one.message}   (${place(file, layer, one.keys)})`),
  ]
  return profilesInvalid(lines.join('\n'), place(file, layer, first.keys), mendOf(first))
}

function mendOf(fault: Fault): string {
  if (fault.keyword !== 'unknown') return 'mend the value'
  const known = (fault.allowed ?? []) as string[]
  const near = fault.nearest ?? nearest(fault.keys.at(-1) ?? '', known)
  return near ? `did you mean "${near}"?` : `known here: ${known.join(', ')}`
}

function profileOf(name: string, { max_tokens, system_prompt, ...same }: ProfileEntry): Profile {
  return {
    name,
    ...same,
    ...(max_tokens === undefined ? {} : { maxTokens: max_tokens }),
    ...(system_prompt === undefined ? {} : { systemPrompt: system_prompt }),
  }
}
