import { type AnyService, type Log, type Scope, systemContext } from '@svc/core'
import { scopeClosed } from '@svc/core/internal'
import { type Channel, dataOf, methodsOf } from '../processes/channel.ts'
import { type RemoteItem, hooksToken, type HostBridge, type SetupRequest, RemoteTap } from './contract.ts'

interface IsolatedScopeOptions {
  readonly channel: Channel
  readonly host: HostBridge
  readonly name: string
  readonly log: Log
  readonly setup: SetupRequest
  readonly provides: AnyService | undefined
}
type Undo = () => unknown

/**
 * The scope of a plugin on the isolated side. It offers contributions on the channel and adds them to the real scope in the
 * host.
 */
export class IsolatedScope implements Scope {
  readonly name: string
  readonly instance: string | undefined
  readonly config: unknown
  readonly log: Log
  readonly hooks: Scope['hooks']
  readonly signal: AbortSignal
  readonly #parts: IsolatedScopeOptions
  readonly #ending = new AbortController()
  readonly #undos = new Set<Undo>()
  #asked: Promise<void>[] | undefined = []
  #count = 0

  constructor(parts: IsolatedScopeOptions) {
    const { name, log, setup, channel, provides } = parts
    this.#parts = parts
    this.name = name
    this.log = log
    this.instance = setup.instance
    this.config = setup.config
    this.signal = this.#ending.signal
    this.hooks = channel.reach<unknown>('hooks', hooksToken(provides)) as Scope['hooks']
  }

  // Fields instead of methods, because a plugin can destructure its scope: `setup({ add, config })`.
  readonly add: Scope['add'] = (slot, name, item) => {
    this.#open(`added ${slot.name}/${name}`)
    const { channel, host } = this.#parts
    const crossed = { path: `${slot.name}.${name}.${++this.#count}`, methods: methodsOf(slot, item), data: dataOf(slot, item) }
    const withdraw = channel.offer<unknown>(crossed.path, slot, item)
    return this.#cross(crossed, withdraw, host.add(slot, name, crossed, systemContext(channel.signal)))
  }

  readonly tap: Scope['tap'] = (hook, tap, options = {}) => {
    this.#open(`tapped ${hook.id}`)
    const { channel, host } = this.#parts
    const crossed = { path: `tap.${hook.id}.${++this.#count}`, methods: ['tap'] }
    const withdraw = channel.offer(crossed.path, RemoteTap, { tap: async (value, ctx) => tap(value as never, ctx) })
    return this.#cross(crossed, withdraw, host.tap(hook, crossed.path, options, systemContext(channel.signal)))
  }

  readonly use: Scope['use'] = thing => {
    this.#open('took ownership of a disposable')
    this.#owned(() => (Symbol.asyncDispose in thing ? thing[Symbol.asyncDispose]() : thing[Symbol.dispose]()))
    return thing
  }

  readonly defer: Scope['defer'] = undo => {
    this.#open('deferred an undo function')
    this.#owned(undo)
  }

  /** Waits until the host has accepted all contributions so far. Throws its rejections. Later rejections are logged. */
  async settle(): Promise<void> {
    const asked = this.#asked ?? []
    this.#asked = undefined
    await Promise.all(asked)
  }

  async close(): Promise<void> {
    this.#ending.abort(scopeClosed(this.name, 'closing'))
    for (const undo of [...this.#undos].reverse()) {
      this.#undos.delete(undo)
      try {
        await undo()
      } catch (error) {
        this.log.error({ err: error }, 'an undo function failed')
      }
    }
  }

  #open(what: string) {
    if (this.signal.aborted) throw scopeClosed(this.name, what)
  }

  #owned(undo: Undo): () => void {
    this.#undos.add(undo)
    return () => void (this.#undos.delete(undo) && undo())
  }

  #cross({ path }: RemoteItem, withdraw: () => void, answer: Promise<void>): () => void {
    const inSetup = this.#asked?.push(answer)
    answer.catch(error => inSetup ?? this.log.error({ err: error }, 'the host rejected a contribution'))
    return this.#owned(async () => {
      withdraw()
      // If the host never accepted it, or lost it with its process, no removal is needed.
      await this.#parts.host.remove(path, systemContext(this.#parts.channel.signal)).catch(() => {})
    })
  }
}
