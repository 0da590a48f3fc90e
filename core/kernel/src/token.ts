/** The caller: an id and its scopes. `*` in `scopes` grants everything. */
export interface Principal {
  readonly id: string
  readonly scopes: readonly string[]
  /** The client address, when the call comes from a request. */
  readonly address?: string
  /** The name of the authentication scheme that recognized it. */
  readonly scheme?: string
  /** Unix milliseconds at which its credential expires, if known. */
  readonly expires?: number
}

/**
 * The last argument of every contract method: signal, caller and trace of a call. It is plain but for the signal, so that it
 * can cross a process.
 */
export interface CallContext {
  /** Aborts when the caller no longer wants the result. */
  readonly signal: AbortSignal
  readonly principal: Principal
  /** The id under which the log lines of this request are found. */
  readonly requestId: string
  /** W3C `traceparent`, passed on to providers and tools. */
  readonly trace?: string
  /** W3C `tracestate`, only set with `trace`: data that tracing systems add, passed on with it. At most 512 characters. */
  readonly traceState?: string
  /** Unix time in milliseconds after which the caller discards the result. */
  readonly deadline?: number
  /** The same for each attempt at the same work: lets the callee avoid doing it twice. */
  readonly idempotencyKey?: string
}

const TRACE = /^[\da-f-]{55,128}$/
const TRACE_STATE = /^[\x20-\x7e]{1,512}$/

/** The headers `traceparent` and `tracestate` of a call, without values that are not valid in a header. */
export function traceHeaders({ trace, traceState }: Pick<CallContext, 'trace' | 'traceState'>): Readonly<Record<string, string>> {
  if (trace === undefined || !TRACE.test(trace)) return {}
  return { traceparent: trace, ...(traceState !== undefined && TRACE_STATE.test(traceState) && { tracestate: traceState }) }
}

/** A method returns once (*call*, a Promise) or many times (*stream*, an AsyncIterable). */
export type MethodKind = 'call' | 'stream'

type Callable = (...args: never[]) => unknown
type KindOf<M> = M extends (...args: never[]) => AsyncIterable<unknown>
  ? 'stream'
  : M extends (...args: never[]) => Promise<unknown>
    ? 'call'
    : never

/** The method table of a contract: each method of the interface and its kind. A missing or wrong entry does not compile. */
export type MethodTable<T> = {
  readonly [K in keyof T as NonNullable<T[K]> extends Callable ? K : never]-?: KindOf<NonNullable<T[K]>>
}

/** A *series* hook: taps only observe. */
export interface Series<V> {
  readonly kind: 'series'
  readonly value: V
  readonly answer: void
}
/** A *waterfall* hook: each tap returns the next value. */
export interface Waterfall<V> {
  readonly kind: 'waterfall'
  readonly value: V
  readonly answer: V
}
/** A *bail* hook: the first result other than `undefined` wins. */
export interface Bail<V, A> {
  readonly kind: 'bail'
  readonly value: V
  readonly answer: A | undefined
}
export type HookType = Series<unknown> | Waterfall<unknown> | Bail<unknown, unknown>
export type HookKind = HookType['kind']
type ValueOf<H> = H extends { readonly value: infer V } ? V : never
type AnswerOf<H> = H extends { readonly answer: infer A } ? A : never
type KindOfHook<H> = H extends { readonly kind: infer K } ? K : never

/** A hook by id and kind, whatever its type. */
export interface AnyHook {
  readonly id: string
  readonly kind: HookKind
}
/** A hook as other plugins see it: tap it with `scope.tap(Chat.hooks.turn, …)`. */
export interface HookRef<H = HookType> extends AnyHook {
  readonly '~hook'?: H
}
/** The type of a tap of the hook `H`. */
export type TapFunction<H> = (value: ValueOf<H>, ctx: CallContext) => AnswerOf<H> | Promise<AnswerOf<H>>
/** The functions with which the owner calls its hooks `H`. */
export type HookCallers<H> = { readonly [K in keyof H]: (value: ValueOf<H[K]>, ctx: CallContext) => Promise<AnswerOf<H[K]>> }

interface AnyToken {
  readonly name: string
  readonly api: number
  readonly methods: Readonly<Record<string, MethodKind>>
}
/** A service by name and methods, whatever its interface. */
export interface AnyService extends AnyToken {
  readonly what: 'service'
  readonly hooks: object
  /**
   * Methods whose first argument names an item. A plugin calls them only for its items: those that the permission lists, or those
   * that it has added to the slot itself. It calls the other methods only with the permission for the whole service.
   */
  readonly items?:
    | { readonly permission: 'secrets'; readonly methods: readonly string[] }
    | { readonly slot: string; readonly methods: readonly string[] }
  /** The references in the configuration that this service resolves: `secret` for `${secret:NAME}`, by this method. */
  readonly resolves?: { readonly scheme: 'secret'; readonly method: string }
}
/** A slot by name and methods, whatever its items. */
export interface AnySlot extends AnyToken {
  readonly what: 'slot'
  /** True for items that cannot cross a process. */
  readonly local: boolean
  readonly changed: AnyHook
  /** Members whose values the manifest must repeat, so that they are known before any code runs. */
  readonly declared?: readonly string[]
  /** Spans of calls to items, for methods whose last argument is the call context. */
  readonly traced?: TracedCalls
  /**
   * The permission that some items need. `without`: an item without this member needs the permission for its name. `listing`:
   * an item whose member of that name lists one of `values` needs the permission for that value.
   */
  readonly permission?:
    | { readonly name: string; readonly without: string }
    | { readonly name: string; readonly listing: string; readonly values: readonly string[] }
}

/**
 * How calls to items of a slot appear in traces: as `<span> <item>`, with the name of the item as `attribute`. A result whose
 * member `failed` is true is a failure.
 */
export interface TracedCalls {
  readonly span: string
  readonly attribute: string
  readonly methods: readonly string[]
  readonly failed?: string
  readonly attributes?: Readonly<Record<string, string>>
  /** The attributes for the first argument and for the answer, or the last item of a stream, if content is recorded. */
  readonly content?: { readonly argument: string; readonly answer: string }
}

/** Identifies a service. Its types carry the interface and the hooks. */
export interface ServiceToken<T = unknown, H = object> extends AnyService {
  readonly hooks: { readonly [K in keyof H]: HookRef<H[K]> }
  readonly '~service'?: T
}

/** The changes of a slot since the last event. */
export interface SlotChange {
  readonly slot: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly version: number
}

/** Identifies a slot. Its type carries the type of the items. */
export interface SlotToken<T = unknown> extends AnySlot {
  /** Fires after items were added or removed, at most once per turn of the event loop. */
  readonly changed: HookRef<Series<SlotChange>>
  readonly '~item'?: T
}

/** A live, read-only view of a slot: `requires: { tools: Tools }` gives one. */
export interface SlotView<T> {
  /** Grows with every change. Use it as a cache key. */
  readonly version: number
  readonly size: number
  get(name: string): T | undefined
  has(name: string): boolean
  /** Names in the order in which they were added. */
  names(): string[]
  entries(): [string, T][]
  /** The plugin that added a name. */
  owner(name: string): string | undefined
}

interface ServiceShape<T, H> extends Pick<AnyService, 'items' | 'resolves'> {
  /** Increases with a breaking change of the contract; additions keep it. */
  api: number
  methods: MethodTable<T>
  hooks?: { readonly [K in keyof H]: KindOfHook<H[K]> }
}

/**
 * Declares a service, which has exactly one provider. `defineService<Chat, ChatHooks>('chat', { api: 1, methods: { reply:
 * 'call', stream: 'stream' }, hooks: { turn: 'waterfall' } })`
 */
export function defineService<T, H = object>(name: string, shape: ServiceShape<T, H>): ServiceToken<T, H> {
  const hooks = Object.entries((shape.hooks ?? {}) as Record<string, HookKind>)
  const refs = Object.fromEntries(hooks.map(([hook, kind]) => [hook, { id: `${name}.${hook}`, kind }]))
  return Object.freeze({
    what: 'service' as const,
    name,
    api: shape.api,
    methods: shape.methods as Record<string, MethodKind>,
    hooks: refs as ServiceToken<T, H>['hooks'],
    ...(shape.items ? { items: shape.items } : {}),
    ...(shape.resolves ? { resolves: shape.resolves } : {}),
  })
}

interface SlotShape<T> extends Pick<AnySlot, 'permission' | 'traced'> {
  api: number
  methods: MethodTable<T>
  local?: boolean
  declared?: readonly (keyof T & string)[]
}

/** Declares a slot: named items of one kind. Members of `T` that are not methods are data, fixed when the item is added. */
export function defineSlot<T>(name: string, shape: SlotShape<T>): SlotToken<T> {
  return Object.freeze({
    what: 'slot' as const,
    local: shape.local ?? false,
    name,
    api: shape.api,
    methods: shape.methods as Record<string, MethodKind>,
    changed: { id: `${name}.changed`, kind: 'series' as const },
    ...(shape.declared ? { declared: shape.declared } : {}),
    ...(shape.permission ? { permission: shape.permission } : {}),
    ...(shape.traced ? { traced: shape.traced } : {}),
  })
}

/** The principal of the program itself, with all scopes: for work at startup and for commands on the machine. */
export const SYSTEM: Principal = Object.freeze({ id: 'system', scopes: Object.freeze(['*']) })

/** Creates the context of work that no request asked for. */
export function systemContext(signal: AbortSignal, requestId = 'system'): CallContext {
  return { signal, principal: SYSTEM, requestId }
}
