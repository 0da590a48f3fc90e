import type { SlotView, CallContext } from '@svc/core'
import type { Effective, Mode, ModelChoice, Profile, Selected, Selection, SelectionWish } from '@svc/core/contracts'
import { choiceOf, choose, chooseAmong, type ModelSources, realOnes, wishOf } from './choose.ts'
import { notAllowed } from './errors.ts'
import type { Profiles } from './profiles.ts'
import type { Session } from './state.ts'

export interface SelectionParts {
  readonly profiles: Profiles
  readonly session: Session
  readonly sources: ModelSources
  readonly modes: SlotView<Mode>
  /** Profile and mode that the server was started with. */
  readonly begin: { readonly profile?: string; readonly mode?: string }
}

const FALLBACK_MODE = 'build'

/** Decides who answers, from request, override, profile and default. */
export function createSelection(parts: SelectionParts): Selection {
  const { profiles, session, sources, modes, begin } = parts
  const profileNow = (): Profile => {
    const name = session.now.profile ?? begin.profile ?? profiles.default
    return profiles.byName.get(name) ?? profiles.byName.get(profiles.default)!
  }
  const modeNow = () => session.now.mode ?? begin.mode ?? profileNow().mode ?? FALLBACK_MODE
  const standing = () => [...(session.now.override ? [choiceOf(session.now.override, 'override')] : []), wishOf(profileNow())]

  function profileOf(name: string): Profile {
    const there = profiles.byName.get(name)
    if (!there) throw notAllowed('profile', name, [...profiles.byName.keys()])
    return there
  }
  function mustBeMode(mode: string): void {
    if (!modes.has(mode)) throw notAllowed('mode', mode, modes.names())
  }
  function modeOf({ profile, mode }: SelectionWish): string {
    if (mode === undefined) return (profile === undefined ? undefined : profileOf(profile).mode) ?? modeNow()
    mustBeMode(mode)
    return mode
  }

  async function effective(ctx: CallContext): Promise<Effective> {
    const { provider, model, source }: ModelChoice = await choose(standing(), sources, ctx).catch(() =>
      named(session.now.override, profileNow())
    )
    const names = { profile: profileNow().name, mode: modeNow(), profiles: [...profiles.byName.keys()], modes: modes.names() }
    return { provider, model, source, ...names, override: session.now.override }
  }

  return {
    effective,

    profiles: async () => ({ profiles: [...profiles.byName.values()], active: profileNow().name, default: profiles.default }),

    async select(asked, ctx): Promise<Selected> {
      const profile = asked.profile === undefined ? profileNow() : profileOf(asked.profile)
      const mode = modeOf(asked)
      const fallback = profile.fallback ? await realOnes(profile.fallback, sources, ctx) : []
      const wishes = [choiceOf(asked, 'request'), ...(asked.profile === undefined ? standing() : [wishOf(profile)])]
      const isFree = asked.provider === undefined && asked.model === undefined
      const choice = await chooseAmong(wishes, isFree ? fallback : [], sources, ctx)
      return { ...choice, profile, mode, fallback }
    },

    async switchProfile(name, ctx) {
      profileOf(name)
      await session.change({ profile: name, override: null }, ctx)
      return effective(ctx)
    },

    async switchModel(provider, model, ctx) {
      const real = await choose([choiceOf({ provider, model }, 'override')], sources, ctx)
      await session.change({ override: { provider: real.provider, model: real.model } }, ctx)
      return effective(ctx)
    },

    async switchMode(mode, ctx) {
      mustBeMode(mode)
      await session.change({ mode }, ctx)
      return effective(ctx)
    },
  }
}

/** What a profile or override says although its provider cannot be had now: shown, so that a person sees what to fix. */
function named(override: { provider: string; model: string } | null, profile: Profile): ModelChoice {
  const source = override ? 'override' : 'profile'
  const { provider = '', model = '' } = override ?? profile
  return { provider, model, source: { provider: source, model: source } }
}
