import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { useVirtualizer } from '@tanstack/react-virtual'
import type { ReplyOf } from '@svc/client'
import { lazy, type ReactNode, Suspense, useMemo, useRef, useState } from 'react'
import { Tabs } from '../address.tsx'
import { client, messageOf, textIn } from '../api.ts'
import { Attached } from '../attached.tsx'
import { useFreshening } from '../fresh.ts'
import { Edit } from '../edit-message.tsx'
import { Back, filtersOf, ListPage, Search, useCursorList, useWhole } from '../list.tsx'
import { Json, Message, Text, Tool, type ToolView, Written } from '../message.tsx'
import { Buttons, Panel } from '../parts.tsx'
import { isPluginTab, usePluginTabs } from '../plugin-pages.ts'
import { conversations, without } from '../router.tsx'
import { Count, Empty, Failure, Loading, Time } from '../states.tsx'
import { contentResult, textsOf } from '../tool-value.ts'
import { visible } from '../visible-text.ts'

type Listed = ReplyOf<'get', '/api/v1/conversations'>['conversations'][number]
type Read = ReplyOf<'get', '/api/v1/conversations/{id}'>
type Stored = Extract<Read['messages'][number], { parts: unknown }>

const LIST_PAGE = 50
const TURN_PAGE = 200

export function Conversations() {
  const { q, label, id } = conversations.useSearch()
  useFreshening({ key: ['conversations'], isAbout: ({ type }) => /turn_(completed|failed|cancelled)|conversation_/.test(type) })
  const list = useCursorList({
    key: ['conversations', { q, label }],
    read: (from, signal) =>
      client.get('/api/v1/conversations', {
        query: { limit: LIST_PAGE, detail: 'full', ...filtersOf({ q, label }, 'q', 'label'), ...from },
        signal,
      }),
    itemsOf: page => page.conversations,
  })
  return (
    <ListPage
      title="Conversations"
      filters={<Search label="Search conversations" />}
      list={list}
      keyOf={item => item.conversation_id}
      entry={item => <Entry item={item} />}
      select={item => ({ id: item.conversation_id })}
      isSelected={item => item.conversation_id === id}
      empty={<Nothing isSearch={q !== undefined || label !== undefined} />}
      hasSelection={id !== undefined}
      detail={
        id === undefined ? (
          <Empty title="Select a conversation">Its messages, tools and tokens appear here.</Empty>
        ) : (
          <Reader key={id} id={id} />
        )
      }
    />
  )
}

const Nothing = ({ isSearch }: { readonly isSearch: boolean }) =>
  isSearch ? (
    <Empty title="Nothing found">
      Search for other words, or <Link to="/conversations">show all</Link>.
    </Empty>
  ) : (
    <Empty title="No conversations yet">
      Start one in the <Link to="/playground">playground</Link>, or with <code>svc chat</code>.
    </Empty>
  )

const titleOf = ({ title }: { readonly title?: string | null }) =>
  typeof title === 'string' ? visible(title) : 'Without a title'

function Entry({ item }: { readonly item: Listed }) {
  const [match] = item.matches ?? []
  return (
    <>
      <span className="list-name clip">{titleOf(item)}</span>
      {match && (
        <span className="list-match clip">
          <Marked text={match.text} marks={match.marks} />
        </span>
      )}
      <span className="list-facts">
        <Time at={item.updated_at} />
        <span>
          <Count value={item.message_count} /> messages
        </span>
        {item.model && <span className="clip">{item.model}</span>}
      </span>
    </>
  )
}

/** A text with its found words marked. */
function Marked({ text, marks }: { readonly text: string; readonly marks: readonly (readonly number[])[] }) {
  const pieces: ReactNode[] = []
  let at = 0
  for (const [from = 0, to = 0] of marks) {
    pieces.push(text.slice(at, from), <mark key={from}>{text.slice(from, to)}</mark>)
    at = to
  }
  return <>{[...pieces, text.slice(at)]}</>
}

function Reader({ id }: { readonly id: string }) {
  const { tab } = conversations.useSearch()
  const pluginTabs = usePluginTabs('conversation')
  const read = useCursorList({
    key: ['conversation', id],
    read: (from, signal) =>
      client.get('/api/v1/conversations/{id}', { path: { id }, query: { detail: 'full', limit: TURN_PAGE, ...from }, signal }),
    itemsOf: page => page.messages.filter(message => 'parts' in message),
  })
  useWhole(read)
  const [first] = read.pages
  if (!first) return read.error ? <Failure error={read.error} onRetry={read.readAgain} /> : <Loading rows={8} />
  return (
    <>
      <ReaderHead conversation={first} />
      {Boolean(read.error) && <Failure error={read.error} onRetry={read.readAgain} />}
      {pluginTabs.length > 0 && <Tabs label="Views of the conversation" values={[[undefined, 'Messages'], ...pluginTabs]} />}
      {isPluginTab(tab) ? (
        <Suspense fallback={<Loading rows={8} />}>
          <PluginTab place="conversation" tab={tab} id={id} />
        </Suspense>
      ) : (
        <Messages id={id} messages={read.items} />
      )}
    </>
  )
}

const PluginTab = lazy(() => import('../plugin-part.tsx').then(module => ({ default: module.PluginTab })))

type Action = 'rename' | 'delete' | 'export'

function ReaderHead({ conversation }: { readonly conversation: Read }) {
  const [action, setAction] = useState<Action>()
  const { conversation_id: id, message_count: count, usage } = conversation
  const close = () => setAction(undefined)
  return (
    <div className="bar">
      <Back />
      <div className="grow">
        <h2 className="section-title clip">{titleOf(conversation)}</h2>
        <p className="muted small">
          <Count value={count} /> messages
          {usage && (
            <>
              {' · '}
              <Count value={usage.input_tokens + usage.output_tokens} /> tokens
            </>
          )}
          {conversation.forked_from && (
            <>
              {' · '}
              <Link to="/conversations" search={{ id: conversation.forked_from.conversation_id }}>
                forked
              </Link>
            </>
          )}
        </p>
      </div>
      <Link className="button" to="/playground" search={{ conversation: id }}>
        Continue
      </Link>
      <Fork id={id} label="Fork" />
      <button type="button" className="button" onClick={() => setAction('rename')}>
        Rename
      </button>
      <button type="button" className="button" onClick={() => setAction('export')}>
        Export
      </button>
      <button type="button" className="button button-bad" onClick={() => setAction('delete')}>
        Delete
      </button>
      {action === 'rename' && <Rename conversation={conversation} onClose={close} />}
      {action === 'delete' && <Delete conversation={conversation} onClose={close} />}
      {action === 'export' && <Export id={id} onClose={close} />}
    </div>
  )
}

/** Starts a conversation with the messages up to one of them. */
function Fork({ id, messageId, label }: { readonly id: string; readonly messageId?: string; readonly label: string }) {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const fork = useMutation({
    mutationFn: () =>
      client.post('/api/v1/conversations/{id}/fork', {
        path: { id },
        body: messageId === undefined ? {} : { message_id: messageId },
      }),
    async onSuccess({ conversation }) {
      await queries.invalidateQueries({ queryKey: ['conversations'] })
      await navigate({ to: '/conversations', search: (before: object) => ({ ...before, id: conversation.conversation_id }) })
    },
  })
  return (
    <>
      <button
        type="button"
        className={messageId === undefined ? 'button' : 'button button-quiet'}
        disabled={fork.isPending}
        onClick={() => fork.mutate()}
      >
        {label}
      </button>
      {fork.error && (
        <span className="note note-bad" role="alert">
          {messageOf(fork.error)}
        </span>
      )}
    </>
  )
}

interface ActionProps {
  readonly conversation: Read
  readonly onClose: () => void
}

function Rename({ conversation: { conversation_id: id, title }, onClose }: ActionProps) {
  const queries = useQueryClient()
  const rename = useMutation({
    mutationFn: (next: string) => client.patch('/api/v1/conversations/{id}', { path: { id }, body: { title: next } }),
    async onSuccess() {
      onClose()
      await queries.invalidateQueries()
    },
  })
  return (
    <Panel title="Rename the conversation" onClose={onClose}>
      <form
        className="stack"
        onSubmit={event => {
          event.preventDefault()
          rename.mutate(textIn(new FormData(event.currentTarget), 'title'))
        }}
      >
        <label className="field">
          <span>Title</span>
          <input className="input" name="title" defaultValue={title ?? ''} required maxLength={200} autoFocus />
        </label>
        {rename.error && <Failure error={rename.error} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={rename.isPending}>
            Rename
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

function Delete({ conversation: { conversation_id: id, title, message_count: count }, onClose }: ActionProps) {
  const queries = useQueryClient()
  const navigate = useNavigate()
  const remove = useMutation({
    mutationFn: () => client.delete('/api/v1/conversations/{id}', { path: { id } }),
    async onSuccess() {
      onClose()
      queries.removeQueries({ queryKey: ['conversation', id] })
      await navigate({ to: '/conversations', search: (before: { id?: string }) => without(before, 'id') })
      await queries.invalidateQueries({ queryKey: ['conversations'] })
    },
  })
  return (
    <Panel title="Delete the conversation?" onClose={onClose}>
      <p>
        “{titleOf({ title })}” and its {count} messages are removed for good.
      </p>
      {remove.error && <Failure error={remove.error} />}
      <Buttons onClose={onClose}>
        <button type="button" className="button button-bad" disabled={remove.isPending} onClick={() => remove.mutate()}>
          Delete
        </button>
      </Buttons>
    </Panel>
  )
}

const FORMATS = [
  ['jsonl', 'JSON lines', 'Everything, to import it again'],
  ['chat_completions', 'Chat completions', 'For other tools'],
  ['markdown', 'Markdown', 'For people'],
] as const

function Export({ id, onClose }: { readonly id: string; readonly onClose: () => void }) {
  return (
    <Panel title="Export the conversation" onClose={onClose}>
      <ul className="facts">
        {FORMATS.map(([format, name, about]) => (
          <div key={format}>
            <a href={`/api/v1/conversations/${encodeURIComponent(id)}/export?format=${format}`} download>
              {name}
            </a>
            <span className="muted">{about}</span>
          </div>
        ))}
      </ul>
      <Buttons onClose={onClose} />
    </Panel>
  )
}

const MESSAGE_HEIGHT = 120

/** Only the messages near the window are in the page, however many there are. */
function Messages({ id, messages: all }: { readonly id: string; readonly messages: readonly Stored[] }) {
  const { messages, results } = useMemo(() => arranged(all), [all])
  const box = useRef<HTMLDivElement>(null)
  const rows = useVirtualizer({
    count: messages.length,
    getScrollElement: () => box.current,
    estimateSize: () => MESSAGE_HEIGHT,
    overscan: 4,
    getItemKey: at => messages[at]!.id,
  })
  if (messages.length === 0) return <Empty title="No messages" />
  return (
    <div className="reader-scroll" ref={box} tabIndex={0} role="region" aria-label="Messages">
      <div className="reader-list" style={{ height: rows.getTotalSize() }}>
        {rows.getVirtualItems().map(({ index, key, start }) => (
          <div
            key={key}
            ref={rows.measureElement}
            data-index={index}
            className="reader-item"
            style={{ transform: `translateY(${start}px)` }}
          >
            <StoredMessage id={id} message={messages[index]!} results={results} />
          </div>
        ))}
      </div>
    </div>
  )
}

type Part = Readonly<Record<string, unknown>>

/** Ids of calls are unique within a turn only. Ids of messages begin with that of their turn. */
const callOf = ({ id }: Pick<Stored, 'id'>, part: Part) => `${id.split('-', 1)[0]} ${String(part.id)}`

/** The result of a tool belongs to its call, and is shown there. */
function arranged(all: readonly Stored[]) {
  const results = new Map<string, Part>()
  for (const message of all)
    for (const part of message.parts) if (part.type === 'tool_result') results.set(callOf(message, part), part)
  return { messages: all.filter(({ role }) => role !== 'tool'), results }
}

interface StoredProps {
  readonly id: string
  readonly message: Stored
  readonly results: ReadonlyMap<string, Part>
}

function StoredMessage({ id, message, results }: StoredProps) {
  const { role, at, model, status, parts } = message
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
        <>
          {role === 'assistant' && <Fork id={id} messageId={message.id} label="Fork from here" />}
          {role === 'user' && <Edit id={id} messageId={message.id} parts={parts} />}
        </>
      }
    >
      {parts.map((part, index) => (
        <PartView key={index} part={part} role={role} result={results.get(callOf(message, part))} />
      ))}
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

const ToolResult = lazy(() => import('../tool-result.tsx'))

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
const toolOf = (call: Part, result: Part | undefined): ToolView => ({
  name: String(call.tool),
  state: result === undefined || result.isError === true || result.is_error === true ? 'failed' : 'done',
  input: call.arguments,
  ...(result === undefined ? {} : { output: Array.isArray(result.content) ? textsOf(result.content) : result.content }),
})
