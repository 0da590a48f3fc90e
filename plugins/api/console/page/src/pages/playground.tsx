import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { type FormEvent, type KeyboardEvent, lazy, memo, type ReactNode, Suspense, useEffect, useRef, useState } from 'react'
import { client } from '../api.ts'
import { Json, Message, Text, Tool, Written } from '../message.tsx'
import { prompt } from '../prompt.ts'
import { Question } from '../question.tsx'
import { playground, without } from '../router.tsx'
import { Badge, Failure, Title } from '../states.tsx'
import { resultOf } from '../tool-value.ts'
import { chat, clear, continueConversation, continueTurn, isOpen, type Piece, send, stop, type Turn } from '../turn.ts'
import { useValue } from '../value.ts'
import { visible } from '../visible-text.ts'

type Search = ReturnType<typeof playground.useSearch>

export function Playground() {
  const { conversation } = playground.useSearch()
  const current = useValue(chat)
  useEffect(() => {
    if (conversation !== undefined && conversation !== chat.get().conversation) continueConversation(conversation)
    else void continueTurn()
  }, [conversation])
  return (
    <div className="split">
      <div className="chat">
        <Head />
        <Transcript turns={current.turns} isContinued={current.conversation !== undefined} />
        <Composer isBusy={isOpen(current)} />
      </div>
      <Settings />
    </div>
  )
}

function Head() {
  const { conversation, turns } = useValue(chat)
  const navigate = useNavigate()
  const begin = () => {
    clear()
    void navigate({ to: '/playground', search: (before: Search) => without(before, 'conversation'), replace: true })
  }
  return (
    <div className="bar">
      <div className="grow">
        <Title name="Playground">Playground</Title>
      </div>
      {conversation !== undefined && (
        <Link className="button button-quiet" to="/conversations" search={{ id: conversation }}>
          Conversation
        </Link>
      )}
      <button
        type="button"
        className="button"
        onClick={begin}
        disabled={isOpen({ turns }) || (turns.length === 0 && !conversation)}
      >
        New chat
      </button>
    </div>
  )
}

const SUGGESTIONS = ['What can you do?', 'What time is it in Tokyo?', 'Calculate 17 % of 2,340']
/** So near to the end, new text scrolls along. */
const NEAR = 120

function Transcript({ turns, isContinued }: { readonly turns: readonly Turn[]; readonly isContinued: boolean }) {
  const box = useRef<HTMLDivElement>(null)
  const isAtEnd = useRef(true)
  useEffect(() => {
    const { current } = box
    if (current && isAtEnd.current) current.scrollTop = current.scrollHeight
  }, [turns])
  const onScroll = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current!
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  const last = turns.at(-1)
  return (
    <div className="transcript" ref={box} onScroll={onScroll} role="log" aria-label="Chat" aria-live="off" tabIndex={0}>
      {turns.length === 0 && <Begin isContinued={isContinued} />}
      {turns.map(turn => (
        <TurnView key={turn.key} turn={turn} />
      ))}
      <p className="visually-hidden" role="status">
        {last && last.state !== 'open' ? `The reply is ${last.state}.` : ''}
      </p>
    </div>
  )
}

function Begin({ isContinued }: { readonly isContinued: boolean }) {
  if (isContinued) return <p className="muted">Your next message continues the conversation.</p>
  return (
    <div className="suggestions">
      <p className="muted">Try the models and tools of this server. For example:</p>
      {SUGGESTIONS.map(message => (
        <button key={message} type="button" className="button suggestion" onClick={() => void send({ message, ...settings })}>
          {message}
        </button>
      ))}
    </div>
  )
}

const TurnView = memo(function TurnView({ turn }: { readonly turn: Turn }) {
  const { message, pieces, state, start, end, problem } = turn
  return (
    <div className={state === 'open' ? 'turn turn-open' : 'turn'}>
      <Message role="user">
        <Written text={message} />
      </Message>
      <Message role="assistant" facts={start && `${start.provider} / ${start.model}`} more={<TurnState turn={turn} />}>
        {pieces.map((piece, at) => (
          <PieceView key={piece.kind === 'tool' ? piece.id : at} piece={piece} turn={turn} />
        ))}
        {state === 'open' && pieces.length === 0 && <p className="muted">Thinking …</p>}
        {problem && <Failure error={Object.assign(new Error(problem.message), problem)} />}
        {end && <Usage end={end} request={start?.request_id} />}
      </Message>
    </div>
  )
})

function TurnState({ turn: { state } }: { readonly turn: Turn }) {
  if (state === 'open') return <Badge tone="accent">answering</Badge>
  if (state === 'failed') return <Badge tone="bad">failed</Badge>
  return state === 'cancelled' ? <Badge tone="warn">stopped</Badge> : null
}

function Usage({ end, request }: { readonly end: NonNullable<Turn['end']>; readonly request: string | undefined }) {
  const { input, output } = end.tokens_used
  return (
    <p className="muted small">
      {input.toLocaleString('en')} tokens in, {output.toLocaleString('en')} out, {(end.duration_ms / 1_000).toFixed(1)} s
      {request !== undefined && (
        <>
          {' · '}
          <Link to="/logs" search={{ request }}>
            log
          </Link>
        </>
      )}
    </p>
  )
}

function PieceView({ piece, turn }: { readonly piece: Piece; readonly turn: Turn }) {
  if (piece.kind === 'text') return <Text text={piece.text} />
  const { name, input, result, ask } = piece
  if (ask && !result && turn.state === 'open') return <Question turn={turn} ask={ask} input={input} />
  const state = result ? (result.success ? 'done' : 'failed') : turn.state === 'open' ? 'running' : 'failed'
  return (
    <>
      <Tool
        name={name}
        state={state}
        input={input}
        output={result && (result.success ? result.result : result.error)}
        {...(result ? { durationMs: result.duration_ms } : {})}
      />
      {result?.success && turn.state !== 'open' && (
        <Suspense>
          <ToolResult
            tool={name}
            input={input}
            result={resultOf(result.result)}
            text={<Json value={result.result} label={`Result of ${visible(name)}, as text`} />}
            isOpen={isNewest(piece, turn)}
            isTextElsewhere
          />
        </Suspense>
      )}
    </>
  )
}

const ToolResult = lazy(() => import('../tool-result.tsx'))

/** One app opens by itself: that of the last tool of the last turn. */
const isNewest = (piece: Piece, turn: Turn) =>
  chat.get().turns.at(-1)?.key === turn.key && turn.pieces.findLast(one => one.kind === 'tool') === piece

/** What the next message is sent with: the settings of the address, and the text for the system. */
let settings: { profile?: string; provider?: string; model?: string; mode?: string; system?: string } = {}

function Composer({ isBusy }: { readonly isBusy: boolean }) {
  const text = useValue(prompt)
  const setText = prompt.set
  const field = useRef<HTMLTextAreaElement>(null)
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    const message = text.trim()
    if (message === '' || isBusy) return
    setText('')
    void send({ message, ...settings })
    field.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && isBusy) void stop()
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  return (
    <form className="composer" onSubmit={submit}>
      <div className="composer-box">
        <label className="visually-hidden" htmlFor="message">
          Message
        </label>
        <textarea
          id="message"
          data-search
          ref={field}
          rows={2}
          value={text}
          placeholder="Write a message"
          onChange={event => setText(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="composer-foot">
          <span className="grow only-wide">Enter sends, Shift+Enter starts a line</span>
          <span className="grow only-narrow" />
          {isBusy ? (
            <button type="button" className="button" onClick={() => void stop()}>
              Stop
            </button>
          ) : (
            <button type="submit" className="button button-primary" disabled={text.trim() === ''}>
              Send
            </button>
          )}
        </div>
      </div>
    </form>
  )
}

const WIDE = '(min-width: 861px)'

function Settings() {
  const search = playground.useSearch()
  const [system, setSystem] = useState('')
  const { profile, provider, model, mode } = search
  useEffect(() => {
    const chosen = Object.entries({ profile, provider, model, mode, system }).filter(([, value]) => value)
    settings = Object.fromEntries(chosen)
  }, [profile, provider, model, mode, system])
  return (
    <details className="side" open={matchMedia(WIDE).matches}>
      <summary>Settings</summary>
      <div className="stack">
        <Choices search={search} />
        <label className="field">
          <span>System prompt</span>
          <textarea
            className="textarea"
            rows={4}
            value={system}
            placeholder="As the profile says"
            onChange={event => setSystem(event.target.value)}
          />
        </label>
        <CopyCurl search={search} />
      </div>
    </details>
  )
}

function Choices({ search }: { readonly search: Search }) {
  const profiles = useQuery({ queryKey: ['profiles'], queryFn: ({ signal }) => client.get('/api/v1/profiles', { signal }) })
  const modes = useQuery({ queryKey: ['modes'], queryFn: ({ signal }) => client.get('/api/v1/modes', { signal }) })
  const providers = useQuery({ queryKey: ['providers'], queryFn: ({ signal }) => client.get('/api/v1/providers', { signal }) })
  const failed = [profiles, modes, providers].find(({ error }) => error)
  const all = providers.data?.providers ?? []
  const models = all
    .filter(({ name }) => search.provider === undefined || name === search.provider)
    .flatMap(({ models: names }) => names)
  return (
    <>
      {failed && <Failure error={failed.error} onRetry={() => void failed.refetch()} />}
      <Choice
        name="profile"
        label="Profile"
        usual={profiles.data?.active}
        values={(profiles.data?.profiles ?? []).map(({ name }) => name)}
      />
      <Choice name="mode" label="Mode" usual={modes.data?.active} values={(modes.data?.modes ?? []).map(({ name }) => name)} />
      <Choice name="provider" label="Provider" values={all.map(({ name }) => name)} />
      <Choice name="model" label="Model" values={models} />
    </>
  )
}

interface ChoiceProps {
  readonly name: 'profile' | 'provider' | 'model' | 'mode'
  readonly label: string
  readonly values: readonly string[]
  /** What applies without a choice. */
  readonly usual?: string | undefined
}

/** A setting in the address, so that a link opens the playground with it. */
function Choice({ name, label, values, usual }: ChoiceProps) {
  const search = playground.useSearch()
  const navigate = useNavigate()
  const chosen = search[name] ?? ''
  const set = (value: string) => {
    // a model belongs to its provider
    const rest = without(search, name, ...(name === 'provider' ? (['model'] as const) : []))
    void navigate({ to: '/playground', search: value === '' ? rest : { ...rest, [name]: value }, replace: true })
  }
  return (
    <label className="field">
      <span>{label}</span>
      <select className="select" value={chosen} onChange={event => set(event.target.value)}>
        <option value="">{usual === undefined ? 'Default' : `Default (${usual})`}</option>
        {[...new Set(chosen === '' ? values : [chosen, ...values])].map(value => (
          <option key={value} value={value}>
            {value}
          </option>
        ))}
      </select>
    </label>
  )
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

function CopyCurl({ search }: { readonly search: Search }): ReactNode {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    const message = chat.get().turns.at(-1)?.message ?? 'Hello'
    const body = JSON.stringify({
      message,
      ...without(search, 'conversation'),
      ...(settings.system ? { system: settings.system } : {}),
    })
    const lines = [
      `curl -N ${location.origin}/api/v1/chat/stream`,
      `  -H 'Content-Type: application/json'`,
      `  -H "Authorization: Bearer $SVC_API_KEY"`,
      `  -d ${quoted(body)}`,
    ]
    await navigator.clipboard.writeText(lines.join(' \\\n'))
    setCopied(true)
    setTimeout(() => setCopied(false), 2_000)
  }
  return (
    <button type="button" className="button" onClick={() => void copy()}>
      <span aria-live="polite">{isCopied ? 'Copied' : 'Copy as curl'}</span>
    </button>
  )
}
