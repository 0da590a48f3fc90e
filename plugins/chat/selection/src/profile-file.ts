import { basename } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { asSvcError, type CallContext, codeOf, readConfigText, type SlotView, type SvcError, svcError } from '@svc/core'
import type { ConfigProblem, Json, Mode, Profile, ProfileFile, Provider, Tool } from '@svc/core/contracts'
import { draftInvalid, fileLocked, nameInvalid } from './errors.ts'
import {
  FIRST_PROFILES,
  type ProfileEntry,
  profileOf,
  type Profiles,
  type ProfilesFile,
  type ProfilesPlace,
  valueOf,
} from './profiles.ts'

interface ProfileFileOptions {
  readonly place: ProfilesPlace
  /** Those of the running server. */
  readonly profiles: Profiles
  /** The configured profile at start, which must exist. */
  readonly begin: string | undefined
  readonly modes: SlotView<Mode>
  readonly providers: SlotView<Provider>
  readonly tools: SlotView<Tool>
}

/** Whether the file has this profile now. An unreadable file has none. */
export async function hasProfile(file: ProfileFile, name: string, ctx: CallContext): Promise<boolean> {
  const now = await file.read(ctx).catch(() => undefined)
  return now?.profiles.some(profile => profile.name === name) ?? false
}

type Entries = { readonly [name: string]: Json | undefined }

/** The service `ProfileFile`. Only the file of the svc home can be changed: another one was named by a person on the machine. */
export function createProfileFile(options: ProfileFileOptions): ProfileFile {
  const { place, profiles, begin } = options
  const locked = place.named ? 'selection.profiles_file names another file' : undefined
  // loaded late: a start does not change files
  const files = () => import('@svc/runtime/home-files')
  const current = async () => {
    const { text = FIRST_PROFILES, version } = await (await files()).readVersioned(place.file)
    return { text, version, value: (await contentOf(text, place)).value }
  }
  const change = async (name: string, toEntry: (before: ProfilesFile) => Json, ifVersion: string | undefined) => {
    if (locked !== undefined) throw fileLocked(locked)
    const before = (await current()).value
    const values = { profiles: { [name]: toEntry(before) } }
    const accept = async (_before: string, after: string) => {
      const problems = await problemsIn(after, options)
      if (problems.length > 0) throw draftInvalid(problems)
    }
    const { changeYaml } = await files()
    const { version } = await changeYaml(place.file, { ifVersion, values, first: FIRST_PROFILES, accept }).catch(rejected)
    return { version }
  }
  return {
    async read() {
      const { value, version } = await current()
      const all = Object.entries(value.profiles).map(([name, entry]) => profileOf(name, entry))
      const isPending = value.default !== profiles.default || !isDeepStrictEqual(all, [...profiles.byName.values()])
      return { default: value.default, profiles: all, version, isPending, ...(locked === undefined ? {} : { locked }) }
    },
    async check(profile) {
      const nameProblem = invalidName(profile.name)
      if (nameProblem) return { problems: [publicProblem(nameProblem)], warnings: [] }
      const { value } = await current()
      const draft = JSON.stringify({ ...value, profiles: { ...value.profiles, [profile.name]: entryOf(profile) } }, null, 2)
      return { problems: (await problemsIn(draft, options)).map(withoutPlace), warnings: warningsOf(profile, options) }
    },
    write(profile, ifVersion) {
      const nameProblem = invalidName(profile.name)
      if (nameProblem) throw nameProblem
      return change(profile.name, before => replaced(before, profile), ifVersion)
    },
    remove(name, ifVersion) {
      if (begin === name) throw notRemovable(name, 'selection.profile names it')
      return change(name, before => removed(before, name), ifVersion)
    },
  }
}

/** The content of a text, with the problems of its form. A text with errors has no profiles. */
async function contentOf(text: string, { file }: ProfilesPlace): Promise<ReturnType<typeof valueOf>> {
  const name = basename(file)
  try {
    return valueOf(name, await readConfigText(name, text))
  } catch (error) {
    return { value: { default: 'default', profiles: {} }, problems: [asSvcError(error, 'PROFILES_INVALID')] }
  }
}

async function problemsIn(text: string, { place, modes }: ProfileFileOptions): Promise<ConfigProblem[]> {
  const { value, problems } = await contentOf(text, place)
  const strange = Object.entries(problems.length > 0 ? {} : value.profiles).flatMap(([name, { mode }]) =>
    mode === undefined || modes.has(mode) ? [] : [unknownMode(name, mode, modes.names())]
  )
  return [...problems.map(publicProblem), ...strange]
}

const unknownMode = (profile: string, mode: string, known: readonly string[]): ConfigProblem => ({
  code: 'PROFILES_INVALID',
  message: `profiles.${profile}.mode names the mode "${mode.slice(0, 100)}", which does not exist`,
  path: `profiles.${profile}.mode`,
  hint: `Use one of: ${known.join(', ')}`,
})

/** A draft is no file, so its lines mean nothing. */
const withoutPlace = ({ where: _where, ...problem }: ConfigProblem): ConfigProblem => problem

function publicProblem({ code, message, where, hint }: SvcError): ConfigProblem {
  const [path] = message.split(' ', 1)
  return {
    code,
    message,
    ...(path?.startsWith('profiles') || path === 'default' ? { path } : {}),
    ...(where === undefined ? {} : { where }),
    ...(hint === undefined ? {} : { hint }),
  }
}

/** Providers and tools come and go, so an unknown name is no problem. */
function warningsOf({ provider, tools: named = [], fallback = [] }: Profile, { providers, tools }: ProfileFileOptions): string[] {
  const lost = [provider, ...fallback.map(item => item.provider)].filter(item => item !== undefined && !providers.has(item))
  return [
    ...new Set([
      ...lost.map(name => `there is no provider "${name}" at the moment`),
      ...named.filter(name => !tools.has(name)).map(name => `there is no tool "${name}" at the moment`),
    ]),
  ]
}

const entryOf = ({ name: _name, maxTokens, systemPrompt, ...same }: Profile): ProfileEntry =>
  ({
    ...same,
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(systemPrompt === undefined ? {} : { system_prompt: systemPrompt }),
  }) as ProfileEntry

/** As a merge patch: what the profile no longer has is removed. */
function replaced({ profiles }: ProfilesFile, profile: Profile): Json {
  const former = Object.hasOwn(profiles, profile.name) ? Object.keys(profiles[profile.name]!) : []
  return { ...Object.fromEntries(former.map(key => [key, null])), ...(entryOf(profile) as Entries) }
}

function removed({ profiles, default: first }: ProfilesFile, name: string): Json {
  if (!Object.hasOwn(profiles, name)) throw unknownProfile(name)
  if (name === first) throw notRemovable(name, 'it is the default')
  return null
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const RESERVED_NAMES = new Set(['constructor', 'prototype'])

const invalidName = (name: unknown) =>
  typeof name === 'string' && NAME.test(name) && !RESERVED_NAMES.has(name) ? undefined : nameInvalid()

const unknownProfile = (name: string) =>
  svcError('INVALID_VALUE', 'profile not found', {
    details: { field: 'profile', value: name.slice(0, 100), reason: 'not found' },
  })

const notRemovable = (name: string, reason: string) =>
  svcError('INVALID_VALUE', `the profile "${name}" cannot be removed, because ${reason}`, {
    details: { field: 'profile', reason },
  })

function rejected(error: unknown): never {
  const code = codeOf(error)
  if (code === 'YAML_INVALID') throw fileLocked('profiles.yaml has errors')
  if (code === 'YAML_ALIASED') throw fileLocked('the profile is an anchor or alias')
  if (code === 'ELOOP' || code === 'FILE_TOO_LARGE') throw fileLocked('profiles.yaml is a link, or too large')
  throw error
}
