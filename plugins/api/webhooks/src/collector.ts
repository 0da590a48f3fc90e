import { cloudEvent, typeFilter, type WorkerEvent } from '@svc/api-types'
import { type BusEvent, type CallContext, defineTopic, type Events, type Log } from '@svc/core'
import type { MetricSource } from '@svc/core/contracts'
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

/** Queues a delivery for each event of this worker and each webhook that wants it. */
export interface Collector {
  readonly metrics: MetricSource
  /** Begins to follow the webhooks in the store. */
  begin(): undefined
  /** Waits until the deliveries of all events so far are queued, at most `limitMs`. */
  drain(limitMs: number): Promise<void>
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
 * Each worker takes the events of its own bus, so that each event is taken once. An event is lost if its worker dies before the delivery is stored, usually some
 * milliseconds. Without an enabled webhook it does not read the bus.
 */
export function createCollector({ webhooks, deliveries, events, worker, log, lasting }: CollectorOptions): Collector {
  const counts = { queued: 0, lost: 0, failed: 0 }
  const pending = new Set<Promise<void>>()
  const marks = new Map<string, () => void>()
  let targets: readonly Target[] = []
  let reading: AbortController | undefined
  let loggedAt = Number.NEGATIVE_INFINITY

  const warn = (facts: object, message: string) => {
    if (performance.now() - loggedAt < LOG_EVERY_MS) return
    loggedAt = performance.now()
    log.warn({ ...facts, ...counts }, message)
  }
  const add = async (target: Target, event: WorkerEvent) => {
    try {
      await deliveries.add(target.id, cloudEvent(event), lasting)
      counts.queued += 1
    } catch (err) {
      counts.failed += 1
      warn({ err, webhook: target.id }, 'an event was not queued for a webhook')
    }
  }
  const take = async (event: BusEvent) => {
    const own = { ...event, worker } as unknown as WorkerEvent
    for (const target of targets.filter(({ isType }) => isType(event.type))) {
      const adding: Promise<void> = add(target, own).finally(() => pending.delete(adding))
      pending.add(adding)
      if (pending.size >= AT_ONCE) await Promise.race(pending)
    }
  }
  const read = async (signal: AbortSignal) => {
    for await (const event of events.subscribe({}, { ...lasting, signal })) {
      counts.lost += event.lost
      if (event.lost > 0) warn({ events: event.lost }, 'events came too fast for webhooks, and some are lost')
      if (event.type === Drained.type) marks.get(String(event.data.mark))?.()
      else if (isForWebhooks(event)) await take(event)
    }
  }
  const update = async (ctx: CallContext) => {
    const enabled = (await webhooks.all(ctx)).filter(webhook => webhook.enabled)
    targets = enabled.map(({ id, types }) => ({ id, isType: typeFilter(types) }))
    if (targets.length > 0 && !reading) {
      reading = new AbortController()
      void read(AbortSignal.any([lasting.signal, reading.signal]))
    } else if (targets.length === 0) {
      reading?.abort()
      reading = undefined
    }
  }
  return {
    metrics: {
      read: async () => [
        counter(
          'svc_webhook_events_total',
          'Events for webhooks by outcome (queued, lost: the worker was too busy, failed: the delivery was not stored)',
          Object.entries(counts).map(([outcome, value]) => ({ labels: { outcome }, value }))
        ),
      ],
    },
    begin() {
      const watch = async (ctx: CallContext) => {
        for await (const _ of webhooks.changes(ctx)) await update(ctx)
      }
      void follow({ what: 'the webhooks', watch, read: update }, lasting, log)
      return undefined
    },
    async drain(limitMs) {
      if (!reading) return
      const { promise, resolve } = Promise.withResolvers<void>()
      const timer = setTimeout(resolve, limitMs)
      const mark = crypto.randomUUID()
      marks.set(mark, resolve)
      await events.publish(Drained, { mark }, lasting)
      await promise
      marks.delete(mark)
      clearTimeout(timer)
      await Promise.all(pending)
    },
  }
}

/** The jobs of deliveries would cause deliveries without end. */
const isForWebhooks = ({ category, data }: BusEvent) => category !== 'FEED' && !(category === 'JOB' && data.kind === KIND)
