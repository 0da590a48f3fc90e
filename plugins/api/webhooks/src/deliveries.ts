import { createHmac } from 'node:crypto'
import { type CloudEvent, EVENT_TYPE } from '@svc/api-types'
import { type CallContext, codeOf, messageOf, type Principal, redactText } from '@svc/core'
import type { JobDetail, JobKind, Jobs, JobState, JobStep, Json } from '@svc/core/contracts'
import { type GuardedFetch, readBody } from '@svc/safe-fetch'
import { deliveryState, deliveryUnknown, refused, unreachable } from './errors.ts'
import type { Webhook, Webhooks } from './webhooks.ts'

/** The kind of the jobs that deliver events. */
export const KIND = 'webhooks.deliver'
/** Only this plugin adds these jobs. */
const INTERNAL = crypto.randomUUID()
/** The owner of these jobs. They count for no other principal. */
const OWNER: Principal = { id: 'plugin:@svc/plugin-webhooks', scopes: [] }

/** The input of a delivery. */
interface Delivery {
  readonly webhook: string
  readonly event: CloudEvent
}

const INPUT = {
  type: 'object',
  additionalProperties: false,
  required: ['webhook', 'event'],
  properties: { webhook: { type: 'string' }, event: { type: 'object' } },
}

/** The answer of a receiver to a test. */
export interface TestResult {
  readonly delivered: boolean
  readonly status: number | null
  readonly durationMs: number
  readonly error: string | null
}

export interface DeliveriesPage {
  readonly deliveries: readonly { readonly job: JobDetail; readonly event: CloudEvent }[]
  readonly next?: string
}

interface DeliveriesOptions {
  readonly webhooks: Webhooks
  readonly jobs: Jobs
  readonly web: GuardedFetch
  readonly worker: string
  readonly delaysMs: readonly number[]
  readonly timeoutMs: number
}

const FORBIDDEN: readonly (string | undefined)[] = ['ADDRESS_FORBIDDEN', 'URL_INVALID']
const GONE = 410
/** For reading webhook, secret and store, beside the request itself. */
const MORE_MS = 5_000

/** Each delivery is a job: durable, retried, and a dead letter in the end. */
export class Deliveries {
  readonly #options: DeliveriesOptions

  constructor(options: DeliveriesOptions) {
    this.#options = options
  }

  /** The kind of the jobs. */
  kind(): JobKind {
    const { delaysMs, timeoutMs } = this.#options
    return {
      description: 'Delivers an event to a webhook',
      internal: INTERNAL,
      input: INPUT,
      attempts: delaysMs.length + 1,
      timeoutMs: timeoutMs + MORE_MS,
      backoff: { delaysMs },
      run: ({ input }, ctx) => this.#deliver(input as unknown as Delivery, ctx),
    }
  }

  /** Queues a delivery. A second call for the same event and webhook does nothing. */
  async add(webhook: string, event: CloudEvent, ctx: CallContext): Promise<void> {
    const input = { webhook, event } as unknown as Json
    // one at a time for each webhook, so that a slow receiver occupies one place
    const request = { kind: KIND, input, group: webhook, key: `${webhook}/${event.id}`, due: Date.parse(event.time) }
    await this.#options.jobs.add({ ...request, internal: INTERNAL }, asOwner(ctx))
  }

  /** Sends a test event at once, also to a disabled webhook. */
  async test(id: string, ctx: CallContext): Promise<TestResult> {
    const { webhooks, worker } = this.#options
    const webhook = await webhooks.get(id, ctx)
    const began = performance.now()
    try {
      const { status, durationMs } = await this.#send(webhook, testEvent(worker, id, ctx), ctx)
      const error = isSuccess(status) ? null : `the receiver answered with the status ${status}`
      return { delivered: isSuccess(status), status, durationMs, error }
    } catch (error) {
      if (codeOf(error) !== 'WEBHOOK_UNREACHABLE') throw error
      return { delivered: false, status: null, durationMs: Math.round(performance.now() - began), error: messageOf(error) }
    }
  }

  /** The deliveries of a webhook, newest first. */
  async list(
    id: string,
    { state, limit, cursor }: { readonly state?: JobState; readonly limit: number; readonly cursor?: string },
    ctx: CallContext
  ): Promise<DeliveriesPage> {
    const { webhooks, jobs } = this.#options
    await webhooks.get(id, ctx)
    const query = { kind: KIND, group: id, limit, ...(state && { state }), ...(cursor !== undefined && { cursor }) }
    const page = await jobs.list(query, asOwner(ctx))
    const details = await Promise.all(page.jobs.map(job => jobs.get(job.id, asOwner(ctx))))
    const deliveries = details.map(job => ({ job, event: (job.input as unknown as Delivery).event }))
    return { deliveries, ...(page.next === undefined ? {} : { next: page.next }) }
  }

  /** Queues a dead letter again, with all its attempts. */
  async retry(id: string, delivery: string, ctx: CallContext): Promise<DeliveriesPage['deliveries'][number]> {
    const { webhooks, jobs } = this.#options
    await webhooks.get(id, ctx)
    const job = await this.#found(id, delivery, ctx)
    try {
      await jobs.retry(delivery, asOwner(ctx))
    } catch (error) {
      throw codeOf(error) === 'JOB_STATE' ? deliveryState(job.state) : error
    }
    const queued = await this.#found(id, delivery, ctx)
    return { job: queued, event: (queued.input as unknown as Delivery).event }
  }

  async *#deliver({ webhook: id, event }: Delivery, ctx: CallContext): AsyncGenerator<JobStep, void> {
    const { webhooks } = this.#options
    const webhook = await webhooks.get(id, ctx).catch((error: unknown) => {
      if (codeOf(error) !== 'INVALID_VALUE') throw error
    })
    if (!webhook?.enabled) {
      yield { type: 'result', value: { skipped: webhook ? 'disabled' : 'removed' } }
      return
    }
    const { status, durationMs } = await this.#send(webhook, event, ctx)
    if (status === GONE) await webhooks.disable(id, 'the receiver answered 410 Gone', ctx)
    if (!isSuccess(status)) throw refused(status, status !== GONE)
    yield { type: 'result', value: { status, duration_ms: durationMs } }
  }

  async #send(webhook: Webhook, event: CloudEvent, ctx: CallContext) {
    const { webhooks, web } = this.#options
    const secrets = await webhooks.secretsOf(webhook, ctx)
    const body = redactText(JSON.stringify(event))
    const began = performance.now()
    const status = await post(web, webhook.url, { body, headers: headersFor(event.id, body, secrets) }, ctx)
    return { status, durationMs: Math.round(performance.now() - began) }
  }

  async #found(id: string, delivery: string, ctx: CallContext): Promise<JobDetail> {
    const job = await this.#options.jobs.get(delivery, asOwner(ctx)).catch((error: unknown) => {
      throw codeOf(error) === 'JOB_UNKNOWN' ? deliveryUnknown(delivery) : error
    })
    if (job.kind !== KIND || job.group !== id) throw deliveryUnknown(delivery)
    return job
  }
}

const asOwner = (ctx: CallContext): CallContext => ({ ...ctx, principal: OWNER })

const isSuccess = (status: number) => status >= 200 && status < 300

/** The status of the answer. Throws WEBHOOK_UNREACHABLE. */
async function post(
  web: GuardedFetch,
  url: string,
  { body, headers }: { readonly body: string; readonly headers: Readonly<Record<string, string>> },
  ctx: CallContext
): Promise<number> {
  try {
    const answer = await web.fetch(url, ctx, { method: 'POST', headers, body })
    await readBody(answer.body, { cut: true })
    return answer.status
  } catch (error) {
    ctx.signal.throwIfAborted()
    const code = codeOf(error)
    throw unreachable(code ?? 'UNKNOWN', messageOf(error), !FORBIDDEN.includes(code))
  }
}

/** The headers of Standard Webhooks: each secret signs id, time and body. */
export function headersFor(id: string, body: string, secrets: readonly string[]): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000))
  const signatures = secrets.map(secret => {
    const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
  })
  return {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': signatures.join(' '),
  }
}

const testEvent = (worker: string, webhook: string, { principal, requestId }: CallContext): CloudEvent => ({
  specversion: '1.0',
  id: `${worker}-test-${crypto.randomUUID()}`,
  source: `/workers/${worker}`,
  type: `${EVENT_TYPE}webhook_test`,
  time: new Date().toISOString(),
  subject: `webhooks/${webhook}`,
  datacontenttype: 'application/json',
  category: 'WEBHOOKS',
  principal: principal.id,
  requestid: requestId,
  data: { webhook },
})
