import { useVirtualizer } from '@tanstack/react-virtual'
import type { ReplyOf } from '@svc/client'
import type { QueryKey } from '@tanstack/react-query'
import { lazy, Suspense, useLayoutEffect, useMemo, useState } from 'react'
import { client } from './api.ts'
import { Attached } from './attached.tsx'
import { Fork } from './conversation-fork.tsx'
import { Edit } from './edit-message.tsx'
import { type CursorList, useCursorList, useWhole } from './list.tsx'
import { Json, Message, Text, Tool, type ToolView, Written } from './message.tsx'
import { Empty, Failure, Loading, Time } from './states.tsx'
import { contentResult, textsOf } from './tool-value.ts'
import { visible } from './visible-text.ts'

type Read = ReplyOf<'get', '/api/v1/conversations/{id}'>
type Stored = Extract<Read['messages'][number], { parts: unknown }>

const TURN_PAGE = 200

/** The stored messages of a conversation, which are read page by page. */
export function useMessages(id: string, key: QueryKey): CursorList<Stored, Read> {
  const read = useCursorList({
    key,
    read: (from, signal) =>
      client.get('/api/v1/conversations/{id}', { path: { id }, query: { detail: 'full', limit: TURN_PAGE, ...from }, signal }),
    itemsOf: page => page.messages.filter(message => 'parts' in message),
  })
  useWhole(read)
  return read
}

interface MessagesProps {
  readonly id: string
  readonly messages: readonly Stored[]
}

export function Messages(props: MessagesProps) {
  const [box, setBox] = useState<HTMLElement | null>(null)
  if (props.messages.length === 0) return <Empty title="No messages" />
  return (
    <div className="reader-scroll" ref={setBox} tabIndex={0} role="region" aria-label="Messages">
      {box && <Rows {...props} box={box} hasActions />}
    </div>
  )
}

interface EarlierProps {
  readonly id: string
  /** The number of messages that the conversation had before the turns of the chat. */
  readonly count: number
  readonly box: HTMLElement
  readonly onResize: () => void
}

/** The messages before those of a chat, which stand above them. */
export default function Earlier({ id, count, box, onResize }: EarlierProps) {
  const { items, error, readAgain, hasMore, isPending } = useMessages(id, ['conversation', id, { count }])
  const messages = useMemo(() => firstOf(items, count), [items, count])
  if (error) return <Failure error={error} onRetry={readAgain} />
  // the latest come last: nothing is shown before they are there, so nothing moves
  if (isPending || hasMore) return <Loading rows={8} />
  return <Rows id={id} messages={messages} box={box} onResize={onResize} />
}

const turnOf = ({ id }: Pick<Stored, 'id'>) => id.split('-', 1)[0]

/** The messages of the first turns. As in `message_count`, all answers of a turn count as one, and results of tools as none. */
function firstOf(messages: readonly Stored[], count: number): readonly Stored[] {
  let [counted, answered] = [0, '']
  const end = messages.findIndex(message => {
    const turn = turnOf(message) ?? ''
    if (message.role === 'user') counted++
    else if (message.role === 'assistant' && answered !== turn) {
      counted++
      answered = turn
    }
    return counted > count
  })
  return end === -1 ? messages : messages.slice(0, end)
}

const MESSAGE_HEIGHT = 120

interface RowsProps extends MessagesProps {
  /** What scrolls. */
  readonly box: HTMLElement
  readonly hasActions?: boolean
  readonly onResize?: () => void
}

/** Only the messages near the window are in the page, however many there are. */
function Rows({ id, messages: all, box, hasActions = false, onResize }: RowsProps) {
  const { shown, results } = useMemo(() => arranged(all), [all])
  const rows = useVirtualizer({
    count: shown.length,
    getScrollElement: () => box,
    estimateSize: () => MESSAGE_HEIGHT,
    overscan: 4,
    getItemKey: at => shown[at]![0].id,
  })
  const height = rows.getTotalSize()
  useLayoutEffect(() => onResize?.(), [height, onResize])
  return (
    <div className="reader-list" style={{ height }}>
      {rows.getVirtualItems().map(({ index, key, start }) => (
        <div
          key={key}
          ref={rows.measureElement}
          data-index={index}
          className="reader-item"
          style={{ transform: `translateY(${start}px)` }}
        >
          <StoredMessage id={id} messages={shown[index]!} results={results} hasActions={hasActions} />
        </div>
      ))}
    </div>
  )
}

type Part = Readonly<Record<string, unknown>>

/** Ids of calls are unique within a turn only. Ids of messages begin with that of their turn. */
const callOf = (message: Pick<Stored, 'id'>, part: Part) => `${turnOf(message)} ${String(part.id)}`

/** The steps of one reply, or one other message. */
type Steps = readonly [Stored, ...Stored[]]

/** What the page shows as messages. The result of a tool is shown at its call, and the calls and texts of one reply are one message. */
function arranged(all: readonly Stored[]) {
  const results = new Map<string, Part>()
  const shown: [Stored, ...Stored[]][] = []
  for (const message of all) {
    for (const part of message.parts) if (part.type === 'tool_result') results.set(callOf(message, part), part)
    const last = shown.at(-1)
    if (last && isSameReply(last[0], message)) last.push(message)
    else if (message.role !== 'tool') shown.push([message])
  }
  return { shown: shown as readonly Steps[], results }
}

const isSameReply = (one: Stored, other: Stored) =>
  one.role === 'assistant' && other.role === 'assistant' && turnOf(one) === turnOf(other)

interface StoredProps {
  readonly id: string
  readonly messages: Steps
  readonly results: ReadonlyMap<string, Part>
  readonly hasActions: boolean
}

function StoredMessage({ id, messages, results, hasActions }: StoredProps) {
  const last = messages.at(-1)!
  const { role, at, model, status, parts } = last
  return (
    <Message
      role={role}
      facts={
        <>
          {model && visible(model)}
          {model && at && ' · '}
          {at && <Time at={at} />}
          {status && ` (${status})`}
        </>
      }
      more={
        hasActions && (
          <>
            {role === 'assistant' && <Fork id={id} messageId={last.id} label="Fork from here" />}
            {role === 'user' && <Edit id={id} messageId={last.id} parts={parts} />}
          </>
        )
      }
    >
      {messages.flatMap(message =>
        message.parts.map((part, index) => (
          <PartView key={`${message.id} ${index}`} part={part} role={role} result={results.get(callOf(message, part))} />
        ))
      )}
    </Message>
  )
}

const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

interface PartProps {
  readonly part: Part
  readonly role: Stored['role']
  /** Of a tool call. */
  readonly result: Part | undefined
}

function PartView({ part, role, result }: PartProps) {
  switch (part.type) {
    case 'text':
      return role === 'user' ? <Written text={String(part.text)} /> : <Text text={String(part.text)} />
    case 'tool_call':
      return <ToolPart call={part} result={result} />
    case 'reasoning':
      return (
        <p className="muted small">
          <Written text={String(part.text)} />
        </p>
      )
    case 'image':
    case 'file':
      return (
        <Attached
          kind={part.type}
          mediaType={textOf(part.mime_type)}
          data={textOf(part.data)}
          {...(typeof part.name === 'string' ? { name: part.name } : {})}
        />
      )
    default:
      return <p className="muted">[{String(part.type)}]</p>
  }
}

const ToolResult = lazy(() => import('./tool-result.tsx'))

function ToolPart({ call, result }: { readonly call: Part; readonly result: Part | undefined }) {
  const view = toolOf(call, result)
  return (
    <>
      <Tool {...view} />
      {view.state === 'done' && (
        <Suspense>
          <ToolResult
            tool={view.name}
            input={view.input}
            result={contentResult(result?.content, false)}
            text={<Json value={view.output} label={`Result of ${visible(view.name)}, as text`} />}
            isTextElsewhere
          />
        </Suspense>
      )}
    </>
  )
}

/** A call without a result was interrupted. */
function toolOf(call: Part, result: Part | undefined): ToolView {
  const view = { name: String(call.tool), input: call.arguments }
  if (result === undefined) return { ...view, state: 'failed' }
  const output = Array.isArray(result.content) ? textsOf(result.content) : result.content
  const isDone = result.isError !== true && result.is_error !== true
  return { ...view, state: isDone ? 'done' : 'failed', output }
}
