import { setTimeout as sleep } from 'node:timers/promises'
import { type CallContext, codeOf } from '@svc/core'
import type { Fence, JobKind, Jobs, JobStep, JobTask } from '@svc/core/contracts'
import { isObject, type Wire } from '../fields.ts'
import { AnswerStart } from '../answer-start.ts'
import { responseError, responseNotFound } from './errors.ts'
import { outputOf, type Prepared, prepare, recordOf, type ResponseServices, storedInput, storeOps } from './making.ts'
import { type Output, type ResponseEvent, resourceOf, visible } from './output.ts'
import { readResponse } from './request.ts'
import { type FoundResponse, isFinal, type StoredResponse } from './store.ts'

/** The name of the job kind. */
export const KIND = 'openai-api.response'
/** Only this plugin adds these jobs. */
const INTERNAL = crypto.randomUUID()

/** Events wait so long, or until there are so many, before they are stored together. */
const [GATHER_MS, MOST_GATHERED] = [100, 200]
/** Milliseconds between two looks at a running response. */
const LOOK_MS = 150
/** Every so many looks without an event, a reader looks at the job too. */
const JOB_LOOKS = 14
const PAGE = 500
const CANCELLED_WAIT_MS = 10_000

/** Adds a response that a job makes, with its first events. Resolves when it is stored. */
export async function queue(
  prepared: Prepared,
  body: Wire,
  services: ResponseServices & { readonly jobs: Jobs },
  ctx: CallContext
): Promise<Wire> {
  const { hex, echo, createdAt } = prepared
  const { responses, limits, jobs } = services
  const response = resourceOf({ hex, echo, createdAt, status: 'queued' }, {})
  const { id: job, ops } = await jobs.prepare({ kind: KIND, input: { response: hex }, internal: INTERNAL }, ctx)
  // the input is stored once
  const { input: _, ...rest } = body
  const data = { input: storedInput(hex, prepared.input), output: [], body: rest }
  const record = { ...recordOf(prepared, response, JSON.stringify(data).length, ctx.principal.id, limits), job }
  const events = [
    { type: 'response.created', sequence_number: 0, response },
    { type: 'response.queued', sequence_number: 1, response },
  ]
  await responses.write([...responses.ops(hex, 0, record, data), ...responses.eventOps(hex, events), ...ops], {}, ctx)
  await jobs.wake(ctx)
  return response
}

/** Makes background responses. */
export function createResponseJobs(services: ResponseServices): JobKind {
  return {
    description: 'Makes a response of the OpenAI API in the background',
    input: { type: 'object', required: ['response'], properties: { response: { type: 'string' } }, additionalProperties: false },
    internal: INTERNAL,
    run: (task, ctx) => make(task, services, ctx),
  }
}

async function* make({ id, input, fence }: JobTask, services: ResponseServices, ctx: CallContext): AsyncGenerator<JobStep, void> {
  const { responses } = services
  const hex = isObject(input) && typeof input.response === 'string' ? input.response : ''
  const found = await responses.find(hex, ctx)
  const { body, input: items } = found ? await responses.data(found, ctx) : {}
  // deleted, cancelled before its worker died, or a job that another plugin has added
  if (found?.record.job !== id || isFinal(found.record) || !isObject(body)) return
  using writer = new EventWriter(hex, await responses.countEvents(hex, ctx), fence, services, ctx)
  const createdAt = Math.floor(found.record.createdAt / 1000)
  const prepared = await prepareAgain({ ...body, input: items }, { hex, createdAt }, found, services, ctx)
  const output = outputOf(prepared.value, writer.next)
  const before = await writer.began(found, output)
  try {
    if ('error' in prepared) throw prepared.error
    await tell(prepared.value, output, writer, services, ctx)
    const { events, response } = output.finish()
    await writer.end(events, await storeOps(prepared.value, { response, output }, services, ctx, before))
  } catch (error) {
    if (ctx.signal.aborted || codeOf(error)?.startsWith('STORE_')) throw error
    const { events, response } = output.fail(await responseError(error, services.http, ctx))
    await writer.end(events, await storeOps(prepared.value, { response, output }, services, ctx, before))
  }
  yield { type: 'result', value: null }
}

/** Prepares the response with its stored input. What it continues can be gone when its job begins. */
async function prepareAgain(
  body: Wire,
  id: { hex: string; createdAt: number },
  { record }: FoundResponse,
  services: ResponseServices,
  ctx: CallContext
): Promise<{ readonly value: Prepared; readonly error?: unknown }> {
  const asked = readResponse(body)
  try {
    const value = await prepare(asked, services, ctx, id)
    // a further attempt of the job goes on with the run of a team or workflow
    return { value: { ...value, call: { ...value.call, idempotencyKey: `response/${id.hex}` } } }
  } catch (error) {
    if (ctx.signal.aborted || codeOf(error)?.startsWith('STORE_')) throw error
    const { request, model, input, echo } = asked
    const call = { name: model, request: { ...request, messages: [] } }
    return { value: { asked, ...id, call, input, turn: [], kept: record.kept, echo: { ...echo, store: true } }, error }
  }
}

async function tell(
  { call }: Prepared,
  output: Output,
  writer: EventWriter,
  { named }: ResponseServices,
  ctx: CallContext
): Promise<void> {
  const events = named.stream(call, ctx)[Symbol.asyncIterator]()
  try {
    const begin = new AnswerStart(events)
    const first = await begin.read()
    if (begin.start) output.take(begin.start)
    if (first) await writer.add(output.take(first))
    for (let step = await events.next(); !step.done; step = await events.next()) {
      // after the end of a call that failed, its error follows
      if (step.value.type !== 'end' || step.value.status === 'completed') await writer.add(output.take(step.value))
    }
  } finally {
    await events.return?.()
  }
}

/** Stores the events of a response in groups, as long as the job has its lease. */
class EventWriter {
  readonly #hex: string
  readonly #fence: Fence
  readonly #services: ResponseServices
  readonly #ctx: CallContext
  #waiting: ResponseEvent[] = []
  #writtenAt = performance.now()
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<unknown> = Promise.resolve()
  #failure: Error | undefined
  /** The number of the next event. */
  readonly next: number

  constructor(hex: string, next: number, fence: Fence, services: ResponseServices, ctx: CallContext) {
    this.#hex = hex
    this.next = next
    this.#fence = fence
    this.#services = services
    this.#ctx = ctx
  }

  /** Stores that the response is in progress. Returns its record. */
  async began({ hex, record, version }: FoundResponse, output: Output): Promise<{ version: number; record: StoredResponse }> {
    const { responses } = this.#services
    const { events, response } = output.proceed()
    const { output: _, ...head } = response
    const next: StoredResponse = { ...record, status: 'in_progress', response: head }
    const data = await responses.data({ hex, record, version }, this.#ctx)
    await this.end(events, responses.ops(hex, version, next, data))
    return { version: version + 1, record: next }
  }

  async add(events: readonly ResponseEvent[]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    this.#waiting.push(...events)
    const isDue = this.#waiting.length >= MOST_GATHERED || performance.now() - this.#writtenAt >= GATHER_MS
    if (isDue) await this.#flush()
    else if (events.length > 0) this.#timer ??= setTimeout(() => void this.#flush().catch(() => {}), GATHER_MS)
  }

  #flush(): Promise<unknown> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    return (this.#writing = this.#writing.then(() => this.#write([], [])))
  }

  async #write(last: readonly ResponseEvent[], ops: Parameters<ResponseServices['responses']['write']>[0]): Promise<void> {
    if (this.#failure !== undefined) throw this.#failure
    const events = [...this.#waiting.splice(0), ...last]
    this.#writtenAt = performance.now()
    if (events.length + ops.length === 0) return
    const { responses } = this.#services
    try {
      await responses.write([...responses.eventOps(this.#hex, events), ...ops], { fence: this.#fence }, this.#ctx)
    } catch (error) {
      this.#failure = error instanceof Error ? error : new Error('failed to store events', { cause: error })
      throw error
    }
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }

  /** Stores these events after those that wait, in one batch with the operations. */
  async end(events: readonly ResponseEvent[], ops: Parameters<ResponseServices['responses']['write']>[0]): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    await this.#writing
    await this.#write(events, ops)
  }
}

/** Yields the stored events of a response after a number, until its end, on any worker. */
export async function* storedEvents(
  { hex }: FoundResponse,
  after: number,
  services: ResponseServices & { readonly jobs: Jobs | undefined },
  ctx: CallContext
): AsyncGenerator<ResponseEvent, void> {
  const { responses } = services
  let next = after + 1
  for (let looks = 1; ; looks++) {
    // the record is read first: what it says to be final has all its events
    const found = await responses.find(hex, ctx)
    if (!found) throw responseNotFound(`resp_${hex}`)
    const events = await responses.events(hex, next, PAGE, ctx)
    yield* events
    next += events.length
    if (events.length > 0) looks = 0
    else if (isFinal(found.record)) return
    else {
      if (looks % JOB_LOOKS === 0) await reconciled(found, services, ctx)
      await sleep(LOOK_MS, undefined, { signal: ctx.signal })
    }
  }
}

/** The response with the state of its job: a job that ended without it has failed, or was cancelled. */
export async function reconciled(
  found: FoundResponse,
  { jobs, ...services }: ResponseServices & { readonly jobs: Jobs | undefined },
  ctx: CallContext
): Promise<FoundResponse> {
  const { job } = found.record
  if (isFinal(found.record) || job === undefined || !jobs) return found
  const ended = await jobs.get(job, ctx).catch((error: unknown) => {
    if (codeOf(error) !== 'JOB_UNKNOWN') throw error
    return undefined
  })
  if (ended?.state === 'queued' || ended?.state === 'running') return found
  const isCancelled = ended?.state === 'cancelled'
  const error = isCancelled ? null : { code: 'server_error', message: ended?.error?.message ?? 'the job of the response failed' }
  return settle(found.hex, isCancelled ? 'cancelled' : 'failed', error, services, ctx)
}

/** Ends a response whose job has ended without it. */
async function settle(
  hex: string,
  status: 'failed' | 'cancelled',
  error: { code: string; message: string } | null,
  { responses }: ResponseServices,
  ctx: CallContext
): Promise<FoundResponse> {
  for (;;) {
    const found = await responses.find(hex, ctx)
    if (!found) throw responseNotFound(`resp_${hex}`)
    if (isFinal(found.record)) return found
    const { body: _, ...data } = await responses.data(found, ctx)
    const response = { ...found.record.response, status, error }
    const record: StoredResponse = { ...found.record, status, response }
    const sequence_number = await responses.countEvents(hex, ctx)
    const event = { type: 'response.failed', sequence_number, response: { ...response, output: [] } }
    try {
      const ops = [...responses.ops(hex, found.version, record, data), ...responses.eventOps(hex, [event])]
      await responses.write(ops, {}, ctx)
      return { hex, version: found.version + 1, record }
    } catch (conflict) {
      if (codeOf(conflict) !== 'STORE_CONFLICT') throw conflict
    }
  }
}

/** Cancels a background response. One that has ended stays as it is. */
export async function cancelled(
  found: FoundResponse,
  { jobs, ...services }: ResponseServices & { readonly jobs: Jobs | undefined },
  ctx: CallContext
): Promise<FoundResponse> {
  const { job } = found.record
  if (isFinal(found.record) || job === undefined || !jobs) return found
  try {
    await jobs.cancel(job, ctx)
  } catch (error) {
    // it has ended meanwhile
    if (codeOf(error) !== 'JOB_STATE' && codeOf(error) !== 'JOB_UNKNOWN') throw error
    const { state } = await jobs.settled(job, CANCELLED_WAIT_MS, ctx).catch(() => ({ state: 'failed' }))
    if (state === 'completed') return (await services.responses.find(found.hex, ctx)) ?? found
  }
  return settle(found.hex, 'cancelled', null, services, ctx)
}

/** The response as its client sees it. */
export async function shownResponse(
  found: FoundResponse,
  shows: StoredResponse['shows'],
  { responses }: ResponseServices,
  ctx: CallContext
): Promise<Wire> {
  const { output } = await responses.data(found, ctx)
  return { ...found.record.response, output: visible(output, shows) }
}
