/** Who asks: an id and what it may do. `scopes` holds `*` for everything. */
export interface Principal {
  readonly id: string
  readonly scopes: readonly string[]
  /** The address the request came from, where there is one. */
  readonly address?: string
}

/**
 * The last argument of every method of a contract: the circumstances of a call. Plain but for the signal, so that it crosses a process.
 */
export interface CallContext {
  /** Aborts when the caller no longer wants the answer. */
  readonly signal: AbortSignal
  readonly principal: Principal
  /** The id that leads to the log lines of this request. */
  readonly requestId: string
  /** W3C `traceparent`, handed on to providers and tools. */
  readonly trace?: string
  /** W3C `tracestate`, only beside a `trace`: what tracing systems add to it, handed on with it; at most 512 characters. */
  readonly traceState?: string
  /** Unix time in milliseconds after which the answer is worthless. */
  readonly deadline?: number
  /** The same for each try of the same piece of work: for whoever must not do a thing twice. */
  readonly idempotencyKey?: string
}

/** A method answers once (*call*, a Promise) or many times (*stream*, an AsyncIterable). */
export type MethodKind = 'call' | 'stream'

type Callable = (...args: never[]) => unknown
type KindOf<M> = M extends (...args: never[]) => AsyncIterable<unknown>
  ? 'stream'
  : M extends (...args: never[]) => Promise<unknown>
    ? 'call'
    : never

/** The table of a contract: each method of the interface and its kind; a wrong or missing word does not compile. */
export type MethodTable<T> = {
  readonly [K in keyof T as NonNullable<T[K]> extends Callable ? K : never]-?: KindOf<NonNullable<T[K]>>
}

/** *series*: look only. */
export interface Series<V> {
  readonly kind: 'series'
  readonly value: V
  readonly answer: void
}
/** *waterfall*: each tap returns the next value. */
export interface Waterfall<V> {
  readonly kind: 'waterfall'
  readonly value: V
  readonly answer: V
}
/** *bail*: the first answer that is not `undefined` wins. */
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

/** A hook by name and kind, whatever passes through it. */
export interface AnyHook {
  readonly id: string
  readonly kind: HookKind
}
/** A hook as others see it: tap it with `scope.tap(Chat.hooks.turn, …)`. */
export interface HookRef<H = HookType> extends AnyHook {
  readonly '~hook'?: H
}
/** What a tap of the hook `H` must be. */
export type TapFunction<H> = (value: ValueOf<H>, ctx: CallContext) => AnswerOf<H> | Promise<AnswerOf<H>>
/** How the owner of the hooks `H` calls them. */
export type HookCallers<H> = { readonly [K in keyof H]: (value: ValueOf<H[K]>, ctx: CallContext) => Promise<AnswerOf<H[K]>> }

interface AnyToken {
  readonly name: string
  readonly api: number
  readonly methods: Readonly<Record<string, MethodKind>>
}
/** A service by name and table, whatever its interface. */
export interface AnyService extends AnyToken {
  readonly what: 'service'
  readonly hooks: object
}
/** A slot by name and table, whatever it holds. */
export interface AnySlot extends AnyToken {
  readonly what: 'slot'
  /** True for the one kind that cannot cross a process. */
  readonly local: boolean
  readonly changed: AnyHook
  /** Data of an item that the manifest of its plugin says too, word for word: so a person knows it before any code runs. */
  readonly declared?: readonly string[]
  /**
   * The permission, by its name, that some items need: one without the member `without` is named in it; of one whose member `listing` is a list, each of these
   * `values` that is in the list.
   */
  readonly permission?:
    | { readonly name: string; readonly without: string }
    | { readonly name: string; readonly listing: string; readonly values: readonly string[] }
}

/** The name of a service and, by its type, its interface and hooks. */
export interface ServiceToken<T = unknown, H = object> extends AnyService {
  readonly hooks: { readonly [K in keyof H]: HookRef<H[K]> }
  readonly '~service'?: T
}

/** What changed in a slot since the last event. */
export interface SlotChange {
  readonly slot: string
  readonly added: readonly string[]
  readonly removed: readonly string[]
  readonly version: number
}

/** The name of a slot and, by its type, what it holds. */
export interface SlotToken<T = unknown> extends AnySlot {
  /** Fires after contributions came or went, once a turn of the loop. */
  readonly changed: HookRef<Series<SlotChange>>
  readonly '~item'?: T
}

/** A live, read-only view of a slot: `requires: { tools: Tools }` gives one. */
export interface SlotView<T> {
  /** Grows with every change: keys caches. */
  readonly version: number
  readonly size: number
  get(name: string): T | undefined
  has(name: string): boolean
  /** Names in the order they were added. */
  names(): string[]
  entries(): [string, T][]
  /** The plugin that added a name. */
  owner(name: string): string | undefined
}

interface ServiceShape<T, H> {
  /** Raised when the contract breaks what was; additions keep it. */
  api: number
  methods: MethodTable<T>
  hooks?: { readonly [K in keyof H]: KindOfHook<H[K]> }
}

/**
 * Declares a service: one job, exactly one provider.
 * `defineService<Chat, ChatHooks>('chat', { api: 1, methods: { reply: 'call', stream: 'stream' }, hooks: { turn: 'waterfall' } })`
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
  })
}

interface SlotShape<T> extends Pick<AnySlot, 'permission'> {
  api: number
  methods: MethodTable<T>
  local?: boolean
  declared?: readonly (keyof T & string)[]
}

/** Declares a slot: many things of one kind, by name. Members of `T` that are no methods are data, fixed when added. */
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
  })
}

/** Everything may be asked by the program itself: the principal of start-up work and of commands on the machine. */
export const SYSTEM: Principal = Object.freeze({ id: 'system', scopes: Object.freeze(['*']) })

/** The circumstances of work that no request asked for. */
export function systemContext(signal: AbortSignal, requestId = 'system'): CallContext {
  return { signal, principal: SYSTEM, requestId }
}
