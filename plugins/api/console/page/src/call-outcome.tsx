import type { EventOf } from '@svc/client'
import { type ReactNode, useState } from 'react'
import { client } from './api.ts'
import { Expires } from './expires.tsx'
import { Json } from './message.tsx'
import { Problem, Step, Steps, useChange } from './records.tsx'
import { isRecord, SchemaForm } from './schema-input.tsx'
import { Badge, durationOf } from './states.tsx'

type Event = EventOf<'post', '/api/v1/tools/{name}/call'>
type Of<T extends Event['type']> = Extract<Event, { readonly type: T }>

/** A call, as its events tell it. */
export interface Running {
  readonly input: Readonly<Record<string, unknown>>
  readonly state: 'running' | 'ended' | 'broken'
  readonly start?: Of<'start'>
  readonly progress: readonly Of<'progress'>[]
  readonly asks: readonly Of<'ask'>[]
  readonly result?: Of<'result'>
  readonly end?: Of<'end'>
  /** Of the call, or of the request. */
  readonly problem?: unknown
}

/** The result of a call, as MCP has it. */
export interface CallResult {
  readonly content: readonly object[]
  readonly structuredContent?: object
  readonly isError: boolean
}

const MOST_STEPS = 200

function after(running: Running, event: Event): Running {
  switch (event.type) {
    case 'start':
      return { ...running, start: event }
    case 'progress':
      return { ...running, progress: [...running.progress, event].slice(-MOST_STEPS) }
    case 'ask':
      return { ...running, asks: [...running.asks, event] }
    case 'result':
      return { ...running, result: event }
    case 'error':
      return {
        ...running,
        problem: Object.assign(new Error(event.error), { code: event.error_code, requestId: running.start?.request_id }),
      }
    case 'end':
      return { ...running, end: event, state: 'ended' }
  }
}

/** Calls a tool, and follows it. Resolves with the end of the call; a broken one has its problem. */
export async function followCall(
  tool: string,
  input: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
  onChange: (running: Running) => void
): Promise<Running> {
  let last: Running = { input, state: 'running', progress: [], asks: [] }
  onChange(last)
  try {
    const events = client.stream('post', '/api/v1/tools/{name}/call', {
      path: { name: tool },
      body: { arguments: input, interactive: true },
      signal,
    })
    for await (const event of events) onChange((last = after(last, event)))
  } catch (error) {
    const problem = signal.aborted ? new Error('You have stopped the call.') : error
    onChange((last = { ...last, state: 'broken', problem }))
  }
  return last
}

/** A result in the words of MCP. */
export const callResultOf = ({ content, structured_content: structured, success }: Of<'result'>): CallResult => ({
  content,
  ...(isRecord(structured) && { structuredContent: structured }),
  isError: !success,
})

/** Whether a person must answer. */
export const isAsking = ({ state, asks }: Running): boolean => state === 'running' && asks.length > 0

interface OutcomeProps {
  readonly running: Running
  /** Shows the result in another form; by default, it is text. */
  readonly shown?: (result: Of<'result'>, text: ReactNode) => ReactNode
}

/** A call: its progress, its questions and its result. */
export function Outcome({ running, shown = (_result, text) => text }: OutcomeProps) {
  const { state, start, progress, asks, result, end, problem } = running
  const last = progress.at(-1)
  return (
    <section className="card" aria-label="The call">
      <div className="card-head">
        <h3 className="section-title">Result</h3>
        <span className="row">
          {end && <span className="muted small">{durationOf(end.duration_ms)}</span>}
          <CallBadge running={running} />
        </span>
      </div>
      <div className="pane-in" aria-live="polite">
        {last && state === 'running' && (
          <Steps label="Progress">
            <Step
              state="running"
              name={last.message ?? 'Running'}
              end={last.total === null ? last.progress : `${last.progress} of ${last.total}`}
            />
          </Steps>
        )}
        {start && state === 'running' && asks.map(ask => <Ask key={ask.question_id} requestId={start.request_id} ask={ask} />)}
        <Problem error={problem} />
        {result && shown(result, <Plain result={result} />)}
      </div>
    </section>
  )
}

const Plain = ({ result: { content, structured_content: structured } }: { readonly result: Of<'result'> }) => (
  <>
    {content.map((part, at) => (
      <Part key={at} part={part} />
    ))}
    {structured !== null && (
      <>
        <span className="muted small">Structured result</span>
        <Json value={structured} label="Structured result" />
      </>
    )}
  </>
)

export function CallBadge({ running: { state, result, end } }: { readonly running: Running }) {
  return (
    <Badge tone={state === 'running' ? 'accent' : end?.status === 'completed' && result?.success ? 'ok' : 'bad'}>
      {end?.status === 'completed' && result?.success === false ? 'the tool failed' : (end?.status ?? state)}
    </Badge>
  )
}

const IMAGES = /^image\/(png|jpeg|gif|webp)$/

/** A part of a result: text stays text, pictures are shown, everything else is JSON. */
function Part({ part }: { readonly part: Record<string, unknown> }) {
  const { type, text, data, mimeType } = part
  if (type === 'text' && typeof text === 'string') return <Json value={text} label="Text of the result" />
  if (type === 'image' && typeof data === 'string' && IMAGES.test(String(mimeType)))
    return <img className="picture" src={`data:${String(mimeType)};base64,${data}`} alt="Result of the tool" />
  return <Json value={part} label={`Part of the result: ${String(type)}`} />
}

interface Request {
  readonly params?: { readonly message?: string; readonly requestedSchema?: Record<string, unknown> }
}

/** The question of a running tool: whether it may run, or input that it needs. */
function Ask({ requestId, ask }: { readonly requestId: string; readonly ask: Of<'ask'> }) {
  const requests = Object.entries((ask.requests ?? {}) as Record<string, Request>)
  const [values, setValues] = useState<Record<string, unknown>>({})
  const reply = useChange((allow: boolean) =>
    client.post('/api/v1/tools/{name}/answer', {
      path: { name: ask.tool },
      body: {
        request_id: requestId,
        question_id: ask.question_id,
        allow,
        ...(allow && requests.length > 0
          ? { answers: Object.fromEntries(requests.map(([key]) => [key, { action: 'accept', content: values[key] ?? {} }])) }
          : {}),
      },
    })
  )
  if (reply.result) return null
  return (
    <div className="ask" role="group" aria-label={`Question of ${ask.tool}`}>
      <p className="ask-question">{ask.question}</p>
      {ask.expires_at !== null && <Expires at={ask.expires_at} />}
      {requests.length === 0 && <Json value={ask.arguments} label={`Arguments of ${ask.tool}`} />}
      {requests.map(([key, { params }]) => (
        <div key={key} className="stack">
          {params?.message && <p>{params.message}</p>}
          {params?.requestedSchema && (
            <SchemaForm
              schema={params.requestedSchema}
              value={values[key] ?? {}}
              onChange={next => setValues(all => ({ ...all, [key]: next }))}
            />
          )}
        </div>
      ))}
      <Problem error={reply.error} />
      <div className="row">
        <button type="button" className="button button-primary" disabled={reply.isRunning} onClick={() => reply.run(true)}>
          {requests.length > 0 ? 'Send' : 'Allow'}
        </button>
        <button type="button" className="button" disabled={reply.isRunning} onClick={() => reply.run(false)}>
          {requests.length > 0 ? 'Decline' : 'Deny'}
        </button>
      </div>
    </div>
  )
}
