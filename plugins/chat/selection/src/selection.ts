import { type SlotView, type CallContext, codeOf, type Events, withTimeout, type Log } from '@svc/core'
import {
  ConfigChanged,
  type Effective,
  type Mode,
  type ModelChoice,
  type Profile,
  type Selected,
  type Selection,
  type SelectionChange,
  type SelectionRequest,
  type ChoiceSource,
  type ModelAlias,
  type ModelInfo,
  type ModelList,
  type ModelRef,
  type Provider,
  type Json,
  type Peers,
  type Space,
  type Store,
} from '@svc/core/contracts'
import { notAllowed, modelNotFound, modelsLate, profileWaits, providerNotFound } from './errors.ts'
import type { Profiles } from './profiles.ts'
import { type Change, publishChange } from '@svc/plugin-kit'
import { follow } from '@svc/storage-kit/follow'

export interface SelectionOptions {
  readonly profiles: Profiles
  /** Whether the profiles file has this profile now. */
  readonly isInFile: (name: string, ctx: CallContext) => Promise<boolean>
  readonly session: ServerSelection
  readonly sources: ModelSources
  readonly modes: SlotView<Mode>
  /** Called after a switch, with the state before and after it. */
  readonly switched: (before: SessionState, after: SessionState, ctx: CallContext) => void
  /** The profile and mode of the command line. */
  readonly begin: { readonly profile?: string; readonly mode?: string }
}

const FALLBACK_MODE = 'build'

type SelectionState = Pick<SelectionOptions, 'profiles' | 'begin'> & { readonly session: Pick<ServerSelection, 'now'> }

function currentProfile({ profiles, session, begin }: SelectionState): Profile {
  const name = session.now.profile ?? begin.profile ?? profiles.default
  return profiles.byName.get(name) ?? profiles.byName.get(profiles.default)!
}

const currentMode = (state: SelectionState): string =>
  state.session.now.mode ?? state.begin.mode ?? currentProfile(state).mode ?? FALLBACK_MODE

/** Profile and mode for taps of `Selection.hooks.changed`. */
export const changeOf = (state: SelectionState): SelectionChange => ({
  profile: currentProfile(state).name,
  mode: currentMode(state),
})

/** Selects the model of a turn from request, override, profile and default. */
export function createSelection(parts: SelectionOptions): Selection {
  const { profiles, session, sources, modes } = parts
  const profileNow = () => currentProfile(parts)
  const modeNow = () => currentMode(parts)
  const [recent, change] = [createRecentChoices(parts), createSwitch(parts)]
  const current = () => [
    ...(session.now.override ? [choiceOf(session.now.override, 'override')] : []),
    preferenceOf(profileNow()),
  ]

  const profileOf = (name: string) => loadedProfile(parts, name)
  const mustBeLoaded = (name: string, ctx: CallContext) => checkLoadedProfile(parts, name, ctx)
  function mustBeMode(mode: string): void {
    if (!modes.has(mode)) throw notAllowed('mode', mode, modes.names())
  }
  function modeOf({ profile, mode }: SelectionRequest): string {
    if (mode === undefined) return (profile === undefined ? undefined : profileOf(profile).mode) ?? modeNow()
    mustBeMode(mode)
    return mode
  }

  async function effective(ctx: CallContext): Promise<Effective> {
    const { provider, model, source }: ModelChoice = await choose(current(), sources, ctx).catch(() =>
      named(session.now.override, profileNow())
    )
    const names = { profile: profileNow().name, mode: modeNow(), profiles: [...profiles.byName.keys()], modes: modes.names() }
    return { provider, model, source, ...names, override: session.now.override }
  }

  return {
    mode: async () => modeNow(),

    effective,

    profiles: async () => ({ profiles: [...profiles.byName.values()], active: profileNow().name, default: profiles.default }),

    select: (asked, ctx) =>
      recent(asked, async () => {
        if (asked.profile !== undefined) await mustBeLoaded(asked.profile, ctx)
        const profile = asked.profile === undefined ? profileNow() : profileOf(asked.profile)
        const mode = modeOf(asked)
        const fallback = profile.fallback ? await realOnes(profile.fallback, sources, ctx) : []
        const preferences = [choiceOf(asked, 'request'), ...(asked.profile === undefined ? current() : [preferenceOf(profile)])]
        const isFree = asked.provider === undefined && asked.model === undefined
        const choice = await chooseAmong(preferences, isFree ? fallback : [], sources, ctx)
        return { ...choice, profile, mode, fallback }
      }),

    async switchProfile(name, ctx) {
      await mustBeLoaded(name, ctx)
      await change({ profile: name, override: null }, ctx)
      return effective(ctx)
    },

    async switchModel(provider, model, ctx) {
      const real = await choose([choiceOf({ provider, model }, 'override')], sources, ctx)
      await change({ override: { provider: real.provider, model: real.model } }, ctx)
      return effective(ctx)
    },

    async switchMode(mode, ctx) {
      mustBeMode(mode)
      await change({ mode }, ctx)
      return effective(ctx)
    },
  }
}

function loadedProfile({ profiles }: SelectionOptions, name: string): Profile {
  const there = profiles.byName.get(name)
  if (!there) throw notAllowed('profile', name, [...profiles.byName.keys()])
  return there
}

/** Throws for a profile that is not loaded, and says if it only waits for a reload. */
async function checkLoadedProfile(parts: SelectionOptions, name: string, ctx: CallContext): Promise<void> {
  const { byName } = parts.profiles
  if (!byName.has(name) && (await parts.isInFile(name, ctx))) throw profileWaits(name, [...byName.keys()])
  loadedProfile(parts, name)
}

/** Publishes a switch as a change of the server. */
export const reportSwitch =
  (events: Events, log: Log): SelectionOptions['switched'] =>
  (before, after, ctx) => {
    const change = { type: ConfigChanged.type, subject: 'selection', before: { ...before }, after: { ...after } }
    publishChange(events, log, change as unknown as Change, ctx)
  }

/** Changes the state of the session, and reports the change. */
const createSwitch =
  ({ session, switched }: Pick<SelectionOptions, 'session' | 'switched'>) =>
  async (wanted: Partial<SessionState>, ctx: CallContext) => {
    const before = session.now
    await session.change(wanted, ctx)
    switched(before, { ...before, ...wanted }, ctx)
  }

/** Milliseconds for which equal requests get the same choice. The work for a choice is a twentieth of a chat. */
const SAME_MS = 250
const MAX_RECENT = 100

/** Makes a choice, or returns that of an equal request a moment ago, unless anything that choices depend on has changed since. */
function createRecentChoices({ session, sources, modes }: Pick<SelectionOptions, 'session' | 'sources' | 'modes'>) {
  const { providers, aliases } = sources
  let choices = new Map<string, Selected>()
  let [until, state, version] = [0, session.now, -1]
  const current = () => {
    const now = performance.now()
    const versions = providers.version + aliases.version + modes.version
    if (now < until && session.now === state && versions === version) return choices
    ;[until, state, version] = [now + SAME_MS, session.now, versions]
    return (choices = new Map())
  }
  return async (asked: SelectionRequest, make: () => Promise<Selected>): Promise<Selected> => {
    // the map of the time at which the choice begins: after a change it is no longer used
    const [known, key] = [current(), keyOf(asked)]
    const selected = known.get(key) ?? (await make())
    // a provider can list an unlisted model at any time
    if (selected.info && known.size < MAX_RECENT) known.set(key, selected)
    return selected
  }
}

const keyOf = ({ provider, model, profile, mode }: SelectionRequest) => JSON.stringify([provider, model, profile, mode])

/** The values of a profile or override whose provider is unavailable. They are shown so that the user sees what to correct. */
function named(override: { provider: string; model: string } | null, profile: Profile): ModelChoice {
  const source = override ? 'override' : 'profile'
  const { provider = '', model = '' } = override ?? profile
  return { provider, model, source: { provider: source, model: source } }
}

/** A requested provider and model, and the source of the request. */
interface Preference {
  readonly provider?: string | undefined
  readonly model?: string | undefined
  readonly source: ChoiceSource
}

/** The available providers, models and aliases. */
interface ModelSources {
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
}

/** A choice, with the information of its provider about the model; absent if the model is not listed. */
interface Chosen extends ModelChoice {
  readonly info?: ModelInfo
}

/**
 * Selects the model: the first preference with a provider or model decides. A model alone selects the current provider if it lists the model, else the alias of this name,
 * else the only provider that lists it. A provider alone selects its first model. Throws PROVIDER_NOT_FOUND, MODEL_NOT_FOUND, MODEL_FAILED.
 */
async function choose(preferences: readonly Preference[], sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const [first, ...rest] = preferences.filter(preference => preference.provider !== undefined || preference.model !== undefined)
  if (!first) return firstOf(defaultProvider(sources.providers), 'default', sources, ctx)
  if (first.provider === undefined) return byModel(first.model!, first.source, rest, sources, ctx)
  if (first.model === undefined) return firstOf(first.provider, first.source, sources, ctx)
  return both({ provider: first.provider, model: first.model }, first.source, sources, ctx)
}

const choiceOf = (
  { provider, model }: { provider?: string | undefined; model?: string | undefined },
  source: ChoiceSource
): Preference => ({ provider, model, source })
const preferenceOf = (profile: Profile): Preference => choiceOf(profile, 'profile')

/** Fallback models, with aliases of their own provider replaced by real names. */
function realOnes<T extends ModelRef>(refs: readonly T[], sources: ModelSources, ctx: CallContext): readonly T[] | Promise<T[]> {
  const { aliases } = sources
  if (aliases.size === 0 || !refs.some(ref => aliases.has(ref.model))) return refs
  return Promise.all(
    refs.map(async ref => {
      const alias = aliases.get(ref.model)
      // a provider that is missing now can exist when it is needed
      if (alias?.provider !== ref.provider || !sources.providers.has(ref.provider)) return ref
      if (infoOf(await listOf(ref.provider, sources, ctx), ref.model)) return ref
      return { ...ref, model: alias.model }
    })
  )
}

/** The same. If the model is unavailable (no such provider, or it cannot list its models), the first available fallback replaces it. */
async function chooseAmong(
  preferences: readonly Preference[],
  fallback: readonly ModelRef[],
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  try {
    return await choose(preferences, sources, ctx)
  } catch (error) {
    ctx.signal.throwIfAborted()
    for (const modelRef of fallback) {
      const next = await choose([choiceOf(modelRef, 'profile')], sources, ctx).catch(() => undefined)
      if (next) return next
    }
    throw error
  }
}

function defaultProvider(providers: SlotView<Provider>): string {
  const [first] = providers.names()
  if (first === undefined) throw providerNotFound('', [])
  return first
}

/** The models of a provider. Throws PROVIDER_NOT_FOUND, MODEL_FAILED. */
async function modelsOf(name: string, { providers }: ModelSources, ctx: CallContext): Promise<ModelList> {
  const provider = providers.get(name)
  if (!provider) throw providerNotFound(name, providers.names())
  return tellModels(name, provider, ctx)
}

/** The same; `undefined` if the provider cannot list them now. Throws PROVIDER_NOT_FOUND. */
async function listOf(name: string, sources: ModelSources, ctx: CallContext): Promise<ModelList | undefined> {
  try {
    return await modelsOf(name, sources, ctx)
  } catch (error) {
    if (codeOf(error) === 'PROVIDER_NOT_FOUND') throw error
    ctx.signal.throwIfAborted()
    return undefined
  }
}

const infoOf = (list: ModelList | undefined, model: string) => list?.models.find(item => item.id === model)

const idsOf = (list: ModelList | undefined) => list?.models.map(model => model.id) ?? []

const chosen = (
  { provider, model }: ModelRef,
  from: ChoiceSource,
  source: ChoiceSource,
  info: ModelInfo | undefined
): Chosen => ({ provider, model, source: { provider: from, model: source }, ...(info ? { info } : {}) })

async function firstOf(provider: string, source: ChoiceSource, sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const { models } = await modelsOf(provider, sources, ctx)
  const [first] = models
  if (!first) throw modelNotFound(provider, '', [])
  return chosen({ provider, model: first.id }, source, source === 'request' ? 'default' : source, first)
}

/** A model of this provider wins over an alias of the same name. A provider that cannot list its models accepts any name; the call shows whether it exists. */
async function both(ref: ModelRef, source: ChoiceSource, sources: ModelSources, ctx: CallContext): Promise<Chosen> {
  const list = await listOf(ref.provider, sources, ctx)
  const info = infoOf(list, ref.model)
  const alias = info ? undefined : sources.aliases.get(ref.model)
  if (!alias) return real(ref, source, list)
  if (alias.provider !== ref.provider) throw modelNotFound(ref.provider, ref.model, idsOf(list))
  return real(alias, source, list)
}

function real(ref: ModelRef, source: ChoiceSource, list: ModelList | undefined): Chosen {
  const info = infoOf(list, ref.model)
  if (list && !list.open && !info) throw modelNotFound(ref.provider, ref.model, idsOf(list))
  return chosen(ref, source, source, info)
}

async function byModel(
  model: string,
  source: ChoiceSource,
  rest: readonly Preference[],
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  const alias = sources.aliases.get(model)
  const current = await choose(rest, sources, ctx).catch((error: unknown) => {
    if (alias) return undefined
    throw error
  })
  const own = current && (await listOf(current.provider, sources, ctx))
  const info = infoOf(own, model)
  if (current && info) return chosen({ provider: current.provider, model }, current.source.provider, source, info)
  if (alias) return real(alias, source, await listOf(alias.provider, sources, ctx))
  return elsewhere(model, source, current!, own, sources, ctx)
}

async function elsewhere(
  model: string,
  source: ChoiceSource,
  current: Chosen,
  own: ModelList | undefined,
  sources: ModelSources,
  ctx: CallContext
): Promise<Chosen> {
  const names = sources.providers.names()
  const lists = await Promise.all(
    names.map(async name => ({ name, list: await modelsOf(name, sources, ctx).catch(() => undefined) }))
  )
  const has = lists.filter(list => infoOf(list.list, model))
  const [only] = has
  if (only && has.length === 1) return chosen({ provider: only.name, model }, source, source, infoOf(only.list, model))
  if (own?.open && has.length === 0)
    return chosen({ provider: current.provider, model }, current.source.provider, source, undefined)
  throw modelNotFound(
    null,
    model,
    lists.flatMap(list => idsOf(list.list))
  )
}

const LIST_MS = 5000

/** Milliseconds for which a model list counts as fresh, so a busy server does not request it for each turn. */
const FRESH_MS = 1_000
const fresh = new WeakMap<Provider, { readonly list: ModelList; readonly until: number }>()

/** The models of a provider, from its last list if that is fresh. Throws MODEL_FAILED and errors of the provider. */
export async function tellModels(name: string, provider: Provider, ctx: CallContext, ms: number = LIST_MS): Promise<ModelList> {
  const known = fresh.get(provider)
  if (known && performance.now() < known.until) return known.list
  const late = () => modelsLate(name, ms)
  const list = await withTimeout(ms, signal => provider.models({ ...ctx, signal }), { signal: ctx.signal, late })
  fresh.set(provider, { list, until: performance.now() + FRESH_MS })
  return list
}

/** The override of this server; `null` without one. */
interface SessionState {
  readonly profile: string | null
  readonly override: { readonly provider: string; readonly model: string } | null
  readonly mode: string | null
}

const NOTHING: SessionState = { profile: null, override: null, mode: null }
const COLLECTION = 'sessions'
const SPACE: Space = {
  name: 'selection',
  version: 1,
  collections: { [COLLECTION]: { indexes: { by_changed: ['changed'] }, watched: true } },
}
const KEPT_MS = 400 * 24 * 3600 * 1000

/** The state of this server's session: in memory for reading, in the store for its other workers and for the next one. */
export interface ServerSelection {
  readonly now: SessionState
  /** Reads the state from the store after a change by another worker. */
  read(ctx: CallContext): Promise<void>
  /** Changes the state for all workers. Resolves when it is stored and all workers have applied it. Throws UNAVAILABLE if a worker is late; the change is still stored. */
  change(change: Partial<SessionState>, ctx: CallContext): Promise<void>
}

/** The dependencies of a session. */
interface SessionDependencies {
  readonly store: Store
  /** A server's id. */
  readonly key: string
  /** The other workers. All must apply a change before `change` resolves. */
  readonly peers: Peers | undefined
  /** Called in this worker after each change of the state. */
  readonly changed: (session: Pick<ServerSelection, 'now'>) => Promise<void>
  readonly log: Log
}

/** Peer message topic of a change. The receivers read the change from the store. */
export const CHANGED = 'selection'

/** Reports each change of the state once, whichever way it arrived, and waits for the report. Reports nothing before `begin`. */
function createReporter(changed: SessionDependencies['changed']) {
  const textOf = ({ profile, override, mode }: SessionState) => JSON.stringify([profile, override, mode])
  let reported: string | undefined
  let reporting = Promise.resolve()
  return {
    begin(now: SessionState) {
      reported = textOf(now)
    },
    report(now: SessionState): Promise<void> {
      const text = textOf(now)
      if (reported === undefined || reported === text) return reporting
      reported = text
      return (reporting = reporting.then(() => changed({ now })))
    },
  }
}

/** Loads the session of a server and follows changes of other workers until `lasting.signal` aborts. */
export async function openSession(
  { store, key, peers, changed, log }: SessionDependencies,
  lasting: CallContext
): Promise<ServerSelection> {
  await store.open(SPACE, lasting)
  await forgetOld(store, lasting)
  let version = 0
  let now = NOTHING
  const take = (value: Json | undefined, of: number) => {
    if (of <= version || value === undefined) return
    version = of
    now = stateOf(value)
  }
  const reporter = createReporter(changed)
  const watch = async (ctx: CallContext) => {
    for await (const change of store.watch(COLLECTION, ctx)) {
      if (change.key === key) take(change.value, change.version)
      await reporter.report(now)
    }
  }
  // if another file replaced the store, its content is valid, even if it is older
  const read = async (ctx: CallContext) => {
    const before = version
    const stored = await store.get(COLLECTION, key, ctx)
    if (version === before) [version, now] = [stored?.version ?? 0, stored ? stateOf(stored.value) : NOTHING]
    else take(stored?.value, stored?.version ?? 0)
    await reporter.report(now)
  }
  follow({ what: 'switches of other workers', watch, read }, lasting, log).catch((err: unknown) =>
    log.error({ err }, 'failed to receive switches of mode, model or profile from other workers')
  )
  await read(lasting)
  reporter.begin(now)

  const put = async (change: Partial<SessionState>, ctx: CallContext): Promise<void> => {
    const next = { ...now, ...change }
    const value = { ...next, changed: Date.now() }
    const from = version
    try {
      await store.batch([{ op: 'put', collection: COLLECTION, key, value, ifVersion: from }], {}, ctx)
      take(value, from + 1)
    } catch (error) {
      if (codeOf(error) !== 'STORE_CONFLICT') throw error
      await read(ctx)
      await put(change, ctx)
    }
  }
  return {
    get now() {
      return now
    },
    read,
    async change(change, ctx) {
      await put(change, ctx)
      await reporter.report(now)
      await peers?.broadcast(CHANGED, null, ctx)
    },
  }
}

const stateOf = (value: Json): SessionState => ({ ...NOTHING, ...(value as unknown as SessionState) })

/** Sessions of servers that ended long ago. */
async function forgetOld(store: Store, ctx: CallContext): Promise<void> {
  const { records } = await store.range(COLLECTION, { index: 'by_changed', to: Date.now() - KEPT_MS, limit: 1000 }, ctx)
  if (records.length > 0)
    await store.batch(
      records.map(record => ({ op: 'delete', collection: COLLECTION, key: record.key })),
      {},
      ctx
    )
}
