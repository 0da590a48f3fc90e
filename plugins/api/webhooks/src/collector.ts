import { cloudEvent, typeFilter, type WorkerEvent } from '@svc/api-types'
import { type BusEvent, type CallContext, defineTopic, type Events, type Log } from '@svc/core'
import type { MetricFamily } from '@svc/core/contracts'
import { counter } from '@svc/plugin-kit'
import { follow } from '@svc/storage-kit/follow'
import { type Deliveries, KIND } from './deliveries.ts'
import type { Webhooks } from './webhooks.ts'

interface CollectorOptions {
  readonly webhooks: Webhooks
  readonly deliveries: Pick<Deliveries, 'add'>
  readonly events: Events
  /** The name of this worker. */
  readonly worker: string
  readonly log: Log
  readonly lasting: CallContext
}

/** An enabled webhook. */
interface Target {
  readonly id: string
  readonly isType: (type: string) => boolean
}

/** Deliveries that are being stored. */
const AT_ONCE = 64
const LOG_EVERY_MS = 10_000
/** Marks the end of the events before it. Readers of the feed do not see this category. */
const Drained = defineTopic<{ readonly mark: string }>('FEED', 'webhooks_drained')

/**
 * Queues a delivery for each event of this worker and each webhook that wants it. Each worker takes the events of its own bus, so that each event is taken once.
 * An event is lost if its worker dies before the delivery is stored, usually within milliseconds. Without an enabled webhook it does not read the bus.
 */
export class Collector {
  readonly #options: CollectorOptions
  readonly #counts = { queued: 0, lost: 0, failed: 0 }
  readonly #pending = new Set<Promise<void>>()
  readonly #marks = new Map<string, () => void>()
  #targets: readonly Target[] = []
  #reading: AbortController | undefined
  #loggedAt = Number.NEGATIVE_INFINITY

  constructor(options: CollectorOptions) {
    this.#options = options
  }

  metrics(): MetricFamily[] {
    const help = 'Events for webhooks by outcome (queued, lost: the worker was too busy, failed: the delivery was not stored)'
    const values = Object.entries(this.#counts).map(([outcome, value]) => ({ labels: { outcome }, value }))
    return [counter('svc_webhook_events_total', help, values)]
  }

  /** Begins to follow the webhooks in the store. */
  begin(): undefined {
    const { webhooks, lasting, log } = this.#options
    const update = (ctx: CallContext) => this.#update(ctx)
    const watch = async (ctx: CallContext) => {
      for await (const _ of webhooks.changes(ctx)) await update(ctx)
    }
    void follow({ what: 'the webhooks', watch, read: update }, lasting, log)
  }

  /** Waits until the deliveries of all events so far are queued, at most `limitMs`. */
  async drain(limitMs: number): Promise<void> {
    if (!this.#reading) return
    const { promise, resolve } = Promise.withResolvers<void>()
    const timer = setTimeout(resolve, limitMs)
    const mark = crypto.randomUUID()
    this.#marks.set(mark, resolve)
    await this.#options.events.publish(Drained, { mark }, this.#options.lasting)
    await promise
    this.#marks.delete(mark)
    clearTimeout(timer)
    await Promise.all(this.#pending)
  }

  async #update(ctx: CallContext): Promise<void> {
    const { webhooks, lasting } = this.#options
    const enabled = (await webhooks.all(ctx)).filter(webhook => webhook.enabled)
    this.#targets = enabled.map(({ id, types }) => ({ id, isType: typeFilter(types) }))
    if (enabled.length > 0 && !this.#reading) {
      this.#reading = new AbortController()
      void this.#read(AbortSignal.any([lasting.signal, this.#reading.signal]))
    } else if (enabled.length === 0) {
      this.#reading?.abort()
      this.#reading = undefined
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    const { events, lasting } = this.#options
    for await (const event of events.subscribe({}, { ...lasting, signal })) {
      this.#counts.lost += event.lost
      if (event.lost > 0) this.#warn({ events: event.lost }, 'events came too fast for webhooks, and some are lost')
      if (event.type === Drained.type) this.#marks.get(String(event.data.mark))?.()
      else if (isForWebhooks(event)) await this.#take(event)
    }
  }

  async #take(event: BusEvent): Promise<void> {
    const own = { ...event, worker: this.#options.worker } as unknown as WorkerEvent
    for (const target of this.#targets.filter(({ isType }) => isType(event.type))) {
      const adding: Promise<void> = this.#add(target, own).finally(() => this.#pending.delete(adding))
      this.#pending.add(adding)
      if (this.#pending.size >= AT_ONCE) await Promise.race(this.#pending)
    }
  }

  async #add({ id }: Target, event: WorkerEvent): Promise<void> {
    const { deliveries, lasting } = this.#options
    try {
      await deliveries.add(id, cloudEvent(event), lasting)
      this.#counts.queued += 1
    } catch (err) {
      this.#counts.failed += 1
      this.#warn({ err, webhook: id }, 'an event was not queued for a webhook')
    }
  }

  #warn(facts: object, message: string): void {
    if (performance.now() - this.#loggedAt < LOG_EVERY_MS) return
    this.#loggedAt = performance.now()
    this.#options.log.warn({ ...facts, ...this.#counts }, message)
  }
}

/** The jobs of deliveries would cause deliveries without end. */
const isForWebhooks = ({ category, data }: BusEvent) => category !== 'FEED' && !(category === 'JOB' && data.kind === KIND)
