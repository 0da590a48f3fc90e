import {
  type AnyHook,
  type AnyService,
  type AnySlot,
  type Plugin,
  schema,
  type Scope,
  type SvcError,
  systemContext,
  type CallContext,
} from '@svc/core'
import { Isolation } from '@svc/core/contracts'
import { contractMismatch, differenceOf, isWithinSize, withSyntaxErrorPlace } from '@svc/core/internal'
import { type PluginDescription, PluginRunner } from './contract.ts'
import { declaresInvalid, notIsolable, valueNotAccepted } from './errors.ts'
import { untrustedSchema } from './untrusted-schema.ts'
import { startProcess, unrestrictedIsolation } from './isolated-process.ts'
import {
  CLOSE_MS,
  type Isolated,
  type IsolatedRef,
  type IsolateOptions,
  instanceRequest,
  requestFor,
  START_MS,
} from './isolated-ref.ts'
import { IsolatedInstance } from './isolated-instance.ts'
import { checkServicePermissions, PROVIDED } from './contributions.ts'
import { filledIn, ownSettings, settingIn, VALUE_KINDS } from './permission-values.ts'

/** The key of the policy among the dependencies of the wrapper. The plugin itself does not see it. */
const POLICY = '~isolation'

/**
 * Creates a plugin that runs the given one, unchanged, in its own process: `plugins: [{ use: await isolate(ref), name:
 * ref.name, manifest }]`. Its dependencies and contributions cross as stubs. With `declares` (see `describeIsolated`), the
 * module runs only at setup. Otherwise it runs once before, in an unrestricted process. For a plugin with `confinement`,
 * `declares` is required: throws a TypeError.
 */
export async function isolate(ref: IsolatedRef, options: IsolateOptions = {}, declares?: unknown): Promise<Plugin> {
  if (ref.confinement && declares === undefined)
    throw new TypeError(`the declarations of ${ref.name} must be read in the sandbox first`)
  const description = declares ?? (await describeIsolated(ref, unrestrictedIsolation(options), options))
  const {
    section,
    instances,
    type,
    config,
    requires,
    optional,
    provides,
    alsoProvides = [],
  } = permittedDescription(ref, description)
  const own = <T extends AnyService | AnySlot>(token: T): T => hostToken(ref, options, token)
  const ownAll = <T extends AnyService | AnySlot>(tokens: Readonly<Record<string, T>>) =>
    Object.fromEntries(Object.entries(tokens).map(([key, token]) => [key, own(token)]))
  const plugin: Isolated = {
    ref,
    options,
    section,
    own,
    requires: ownAll(requires),
    optional: ownAll(optional),
    provides: provides && own(provides),
    alsoProvides: alsoProvides.map(own),
    ...(config === undefined ? {} : { config: untrustedSchema(config) }),
  }
  const lives = new Map<string | undefined, IsolatedInstance>()
  return Object.freeze({
    ...(section === undefined ? {} : { section }),
    ...(instances === undefined ? {} : { instances }),
    ...(type === undefined ? {} : { type }),
    ...(plugin.config === undefined ? {} : { config: plugin.config }),
    ...(plugin.provides ? { provides: plugin.provides, alsoProvides: plugin.alsoProvides } : {}),
    ...(ref.confinement ? { check: async (value: unknown, instance?: string) => planned(plugin, value, instance) } : {}),
    requires: { ...plugin.requires, ...(ref.confinement ? { [POLICY]: Isolation } : {}) },
    // The optional entry of two with the same key would win, so a plugin with this key could bring its own policy.
    optional: Object.fromEntries(Object.entries(plugin.optional).filter(([key]) => key !== POLICY)),
    setup(scope: Scope, { [POLICY]: policy, ...given }: Record<string, unknown>) {
      const life = new IsolatedInstance(plugin, scope, given, (policy as Isolation | undefined) ?? unrestrictedIsolation(options))
      lives.set(scope.instance, life)
      return life.setUp()
    },
    processStatus: (instance?: string) => lives.get(instance)?.processStatus(),
  })
}

/** Throws PLUGIN_INVALID, and NOT_PERMITTED for services without a permission. */
function permittedDescription({ name, confinement: held }: IsolatedRef, said: unknown): PluginDescription {
  const description = descriptionOf(name, said)
  const { requires, optional, provides, alsoProvides = [] } = description
  const provided = [...(provides ? [provides] : []), ...alsoProvides].map(token => [`${PROVIDED} ${token.name}`, token] as const)
  const tokens = { ...requires, ...optional, ...Object.fromEntries(provided) }
  if (held) checkServicePermissions(name, tokens, held.permissions)
  return description
}

/** Plans the process of an instance whose configuration is accepted. Returns the problems of the others. */
function planned(plugin: Isolated, value: unknown, instance: string | undefined): SvcError[] {
  const { ref, options } = plugin
  const problems = notAcceptedIn(plugin, value)
  const isExcluded = options.excluded?.some(name => name.plugin === ref.name && name.instance === instance)
  if (problems.length === 0 && isExcluded !== true) options.prestarts?.plan(instanceRequest(plugin, value, instance))
  return problems
}

/** The values of this configuration that a person has not accepted, as problems of a start. */
function notAcceptedIn({ ref, config, section }: Isolated, value: unknown): SvcError[] {
  const { permissions, values: accepted } = ref.confinement ?? { permissions: {} }
  if (accepted === undefined) return []
  const lookup = ownSettings({ section: section ?? '', value: config ? config.written(value) : value })
  return VALUE_KINDS.flatMap(kind =>
    (permissions[kind] ?? []).flatMap(entry => {
      const setting = settingIn(entry)
      if (setting === undefined) return []
      const beyond = filledIn(kind, [entry], lookup).filter(item => !accepted[kind]?.includes(item))
      return beyond.map(item => valueNotAccepted(ref.name, kind, setting, item))
    })
  )
}

/** Uses the token of the host if it has one: the offering side never uses the method table of an untrusted plugin. */
function hostToken<T extends AnyService | AnySlot>({ name }: IsolatedRef, { contracts = [] }: IsolateOptions, token: T): T {
  if (token.what === 'slot' && token.local) throw notIsolable(name, token.name)
  const ours = contracts.find((contract): contract is T => contract.what === token.what && contract.name === token.name)
  const difference = ours && differenceOf(token, ours)
  if (difference) throw contractMismatch(name, token.name, difference)
  return ours ?? withOwnHooks(token)
}

/**
 * Hooks are identified by id. The token of an untrusted plugin is restricted to hooks of its own name, or it could call and tap
 * others.
 */
function withOwnHooks<T extends AnyService | AnySlot>(token: T): T {
  const { name } = token
  if (token.what === 'slot') return { ...token, changed: { id: `${name}.changed`, kind: 'series' } }
  const hooks = Object.entries({ ...token.hooks } as Record<string, AnyHook>).map(([hook, { kind }]) => [
    hook,
    { id: `${name}.${hook}`, kind },
  ])
  return { ...token, hooks: Object.fromEntries(hooks) }
}

/**
 * Runs the module of a plugin once, confined by `isolation`, to learn its declarations: plain data for `isolate`. Throws import
 * errors, PLUGIN_INVALID, and ISOLATION_UNAVAILABLE.
 */
export async function describeIsolated(
  ref: IsolatedRef,
  isolation: Isolation,
  options: IsolateOptions = {},
  ctx: CallContext = systemContext(AbortSignal.timeout(START_MS))
): Promise<unknown> {
  const { startLimitMs = START_MS, closeLimitMs = CLOSE_MS } = options
  const running = await startProcess(isolation, requestFor(ref, options), ctx, { closeLimitMs })
  try {
    const said = await running.channel
      .reach('plugin_runner', PluginRunner)
      .describe({ ...ctx, deadline: Date.now() + startLimitMs })
    return descriptionOf(ref.name, said)
  } catch (error) {
    throw await withSyntaxErrorPlace(error, ref.module, ref.confinement?.folder)
  } finally {
    await running.end()
  }
}

const LONGEST = 1_048_576
const word = { type: 'string', maxLength: 200 } as const
const hook = { type: 'object', properties: { kind: { enum: ['series', 'waterfall', 'bail'] } }, required: ['kind'] } as const
const token = {
  type: 'object',
  properties: {
    what: { enum: ['service', 'slot'] },
    name: word,
    api: { type: 'integer' },
    methods: { type: 'object', additionalProperties: { enum: ['call', 'stream'] } },
    hooks: { type: 'object', additionalProperties: hook },
    changed: hook,
    local: { type: 'boolean' },
  },
  required: ['what', 'name', 'api', 'methods'],
} as const

// Only keywords that need no further validator code at startup.
const form = schema<PluginDescription>({
  type: 'object',
  properties: {
    section: word,
    instances: word,
    type: word,
    config: { type: ['object', 'boolean'] },
    requires: { type: 'object', additionalProperties: token },
    optional: { type: 'object', additionalProperties: token },
    provides: token,
    alsoProvides: { type: 'array', items: token, maxItems: 20 },
  },
  required: ['requires', 'optional'],
})

/**
 * Validates the declarations of an isolated plugin. They are untrusted, and the start of the host depends on them. Throws
 * PLUGIN_INVALID.
 */
function descriptionOf(plugin: string, said: unknown): PluginDescription {
  if (!isWithinSize(said, LONGEST)) throw declaresInvalid(plugin, `more than ${LONGEST} characters`)
  const [problem] = form.check(said)
  if (problem) throw declaresInvalid(plugin, `${problem.path} ${problem.message}`.trim())
  return said as PluginDescription
}
