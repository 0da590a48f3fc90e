import { setTimeout as sleep } from 'node:timers/promises'
import type { CallContext, Log } from '@svc/core'
import type { Conversations, Http, Jobs, NamedModels, Store } from '@svc/core/contracts'
import { createResponseJobs, KIND } from './background.ts'
import { RESPONSES_FORMAT } from './errors.ts'
import { createResponseRoutes } from './routes.ts'
import { ResponseStore, SPACE } from './store.ts'

export interface ResponsesConfig {
  readonly keep_days: number
  readonly keep_items_minutes: number
  readonly max_stored: number
  readonly max_size: number
}

export const RESPONSES_SCHEMA = {
  type: 'object',
  additionalProperties: false,
  default: {},
  properties: {
    keep_days: {
      type: 'integer',
      minimum: 1,
      maximum: 3650,
      default: 30,
      description: 'Days for which svc keeps responses of requests with store: true',
    },
    keep_items_minutes: {
      type: 'integer',
      minimum: 0,
      maximum: 1440,
      default: 0,
      description:
        'Minutes for which svc keeps the output items of responses to requests without store, for clients that send references to them. 0: svc keeps nothing',
    },
    max_stored: {
      type: 'integer',
      minimum: 1,
      maximum: 1_000_000,
      default: 10_000,
      description: 'Maximum number of stored responses of a principal, approximately',
    },
    max_size: {
      type: 'integer',
      minimum: 1024,
      maximum: 8_388_608,
      default: 8_388_608,
      description: 'Maximum bytes of a request whose response is stored',
    },
  },
} as const

export interface ResponsesOptions {
  readonly http: Http
  readonly named: NamedModels
  readonly holdMs: number
  readonly store: Store
  readonly conversations: Conversations | undefined
  readonly jobs: Jobs | undefined
  readonly lasting: CallContext
  readonly log: Log
}

const [DAY_MS, MINUTE_MS] = [86_400_000, 60_000]
/** Milliseconds between two searches for expired responses. */
const SWEEP_MS = 10 * MINUTE_MS

/** Responses: opens their space, and deletes expired ones until `lasting.signal` aborts. */
export async function createResponses(
  { http, named, holdMs, store, conversations, jobs, lasting, log }: ResponsesOptions,
  config: ResponsesConfig
) {
  await store.open(SPACE, lasting)
  const responses = new ResponseStore({ store, conversations, maxStored: config.max_stored, lasting })
  const limits = {
    keepMs: config.keep_days * DAY_MS,
    keepItemsMs: config.keep_items_minutes * MINUTE_MS,
    maxSize: config.max_size,
  }
  const services = { named, http, responses, limits }
  void sweeping(responses, lasting, log)
  return {
    routes: createResponseRoutes({ ...services, holdMs, jobs, log }),
    kind: { name: KIND, job: createResponseJobs(services) },
    format: RESPONSES_FORMAT,
  }
}

async function sweeping(responses: ResponseStore, { signal }: CallContext, log: Log): Promise<void> {
  while (!signal.aborted) {
    await sleep(SWEEP_MS, undefined, { signal, ref: false }).catch(() => {})
    try {
      while (!signal.aborted && !(await responses.sweep()));
    } catch (err) {
      if (!signal.aborted) log.warn({ err }, 'failed to delete expired responses')
    }
  }
}
