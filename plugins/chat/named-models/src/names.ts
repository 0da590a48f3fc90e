import { type CallContext, codeOf, type Log, type SlotView, withTimeout } from '@svc/core'
import type {
  ModelAlias,
  ModelInfo,
  ModelRef,
  NamedModel,
  Provider,
  ProviderFeatures,
  Selection,
  Teams,
  Workflows,
} from '@svc/core/contracts'
import { ambiguous, nameMissing, notFound } from './errors.ts'

/** What names are looked up in. */
export interface NameSources {
  readonly providers: SlotView<Provider>
  readonly aliases: SlotView<ModelAlias>
  readonly selection: Selection
  readonly teams: Teams | undefined
  readonly workflows: Workflows | undefined
  readonly log: Log
}

/** What a name stands for: a model, or an agent of this kind and name. */
export type Target =
  | { readonly kind: 'model' | 'alias'; readonly model: ModelRef }
  | { readonly kind: 'profile' | 'team' | 'workflow'; readonly agent: string }

/** Looks up names. */
export interface Names {
  list(ctx: CallContext): Promise<readonly NamedModel[]>
  /** Throws INVALID_VALUE, MODEL_NOT_FOUND. */
  resolve(name: string, ctx: CallContext): Promise<Target>
  describe(name: string, ctx: CallContext): Promise<NamedModel>
}

const PREFIXES = { profile: 'profile', agent: 'profile', team: 'team', workflow: 'workflow' } as const
type Prefix = keyof typeof PREFIXES
const AGENT = /^(profile|agent|team|workflow):(.+)$/s

export function createNames(sources: NameSources): Names {
  const models = createModelLists(sources)
  const agents = (ctx: CallContext) => listAgents(sources, ctx)

  async function resolve(name: string, ctx: CallContext): Promise<Target> {
    if (name.trim() === '') throw nameMissing()
    const named = headed(name, sources.providers)
    if (named) return { kind: 'model', model: named }
    const alias = sources.aliases.get(name)
    if (alias) return { kind: 'alias', model: { provider: alias.provider, model: alias.model } }
    const owners = (await models.read(ctx)).filter(({ infos }) => infos.has(name)).map(({ provider }) => provider)
    if (owners.length > 1) throw ambiguous(name, owners)
    if (owners.length === 1) return { kind: 'model', model: { provider: owners[0]!, model: name } }
    const [, prefix, agent] = AGENT.exec(name) ?? []
    const kind = prefix === undefined ? undefined : PREFIXES[prefix as Prefix]
    if (!kind || !(await agents(ctx)).some(({ id }) => id === `${kind}:${agent!}`)) throw notFound(name)
    return { kind, agent: agent! }
  }

  async function describe(name: string, ctx: CallContext): Promise<NamedModel> {
    const target = await resolve(name, ctx)
    if ('agent' in target) return (await agents(ctx)).find(({ id }) => id === `${target.kind}:${target.agent}`)!
    const { provider, model } = target.model
    const listed = (await models.read(ctx)).find(list => list.provider === provider)
    const info = listed?.infos.get(model)
    const source = sources.providers.get(provider)
    if (!source || (listed?.isComplete && !info)) throw notFound(name)
    // the id is that of the request, so that a client finds what it asked for
    return { ...modelOf(provider, info ?? { id: model }, source.features), id: name, kind: target.kind }
  }

  return {
    resolve,
    describe,
    async list(ctx) {
      const [lists, listedAgents] = await Promise.all([models.read(ctx), agents(ctx)])
      const ofProviders = lists.flatMap(({ provider, infos, features }) =>
        [...infos.values()].map(info => modelOf(provider, info, features))
      )
      const byId = new Map(ofProviders.map(model => [model.id, model]))
      const aliases = sources.aliases.entries().map(([id, { provider, model }]): NamedModel => {
        const known = byId.get(`${provider}/${model}`)
        return { ...known, id, kind: 'alias', owner: provider }
      })
      return [...ofProviders, ...aliases, ...listedAgents]
    },
  }
}

/** Provider and model of `<provider>/<model>`. Ids of models can contain slashes. */
function headed(name: string, providers: SlotView<Provider>): ModelRef | undefined {
  const at = name.indexOf('/')
  const head = name.slice(0, at)
  return at > 0 && at < name.length - 1 && providers.has(head) ? { provider: head, model: name.slice(at + 1) } : undefined
}

function modelOf(provider: string, { id, context, output, features }: ModelInfo, base: ProviderFeatures): NamedModel {
  return {
    id: `${provider}/${id}`,
    kind: 'model',
    owner: provider,
    ...(context === undefined ? {} : { context }),
    ...(output === undefined ? {} : { output }),
    features: features ? { ...base, ...features } : base,
  }
}

/** Without authentication, the caller of a route is anonymous and can use all of them. */
const OPEN: ReadonlySet<string> = new Set(['anonymous', 'system'])
const may = ({ principal }: CallContext, scope: string) => OPEN.has(principal.id) || principal.scopes.includes(scope)

/** The agents that the caller can use. A team and a workflow are runs, which need the scope `workflows`. */
async function listAgents({ selection, teams, workflows }: NameSources, ctx: CallContext): Promise<NamedModel[]> {
  const canRun = may(ctx, 'workflows')
  const [{ profiles }, teamInfos, workflowInfos] = await Promise.all([
    selection.profiles(ctx),
    canRun && teams ? teams.list(ctx) : [],
    canRun && workflows ? workflows.list(ctx) : [],
  ])
  const usable = <T extends { readonly problems?: readonly unknown[] }>(infos: readonly T[]) =>
    infos.filter(({ problems = [] }) => problems.length === 0)
  const agent = (
    kind: 'profile' | 'team' | 'workflow',
    { name, description }: { name: string; description?: string }
  ): NamedModel => ({
    id: `${kind}:${name}`,
    kind,
    owner: 'svc',
    ...(description === undefined ? {} : { description }),
  })
  return [
    ...profiles.map(profile => agent('profile', profile)),
    ...usable(teamInfos).map(team => agent('team', team)),
    ...usable(workflowInfos).map(workflow => agent('workflow', workflow)),
  ]
}

/** The models that a provider lists. */
interface ProviderModels {
  readonly provider: string
  readonly features: ProviderFeatures
  readonly infos: ReadonlyMap<string, ModelInfo>
  /** Whether the provider has no other models. */
  readonly isComplete: boolean
}

/** Milliseconds for which the lists of all providers are used again. A provider caches its own list for longer. */
const FRESH_MS = 1_000
/** Time limit for the list of a provider. */
const LIST_MS = 5_000

/** Reads the lists of all providers. A provider that fails or is late has no models meanwhile. */
function createModelLists({ providers, log }: Pick<NameSources, 'providers' | 'log'>) {
  let lists: Promise<readonly ProviderModels[]> | undefined
  let [readAt, version] = [0, -1]
  const listOf = async ([provider, source]: readonly [string, Provider], ctx: CallContext): Promise<ProviderModels> => {
    const list = async (signal: AbortSignal) => source.models({ ...ctx, signal })
    try {
      const { models, open } = await withTimeout(LIST_MS, list)
      const infos = new Map(models.map(info => [info.id, info]))
      return { provider, features: source.features, infos, isComplete: !open }
    } catch (error) {
      // its health check reports why a provider fails; other errors break the contract
      if (codeOf(error) !== 'MODEL_FAILED') log.warn({ err: error, provider }, 'a provider did not list its models')
      return { provider, features: source.features, infos: new Map(), isComplete: false }
    }
  }
  return {
    /** The lists. Callers at the same time share one reading, which no caller aborts. */
    read(ctx: CallContext): Promise<readonly ProviderModels[]> {
      const now = performance.now()
      if (lists && now - readAt < FRESH_MS && version === providers.version) return lists
      ;[readAt, version] = [now, providers.version]
      return (lists = Promise.all(providers.entries().map(entry => listOf(entry, ctx))))
    },
  }
}
