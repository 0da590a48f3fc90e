import { lazy, memo, type ReactNode, Suspense, useCallback, useEffect, useRef, useState } from 'react'
import { Attached } from './attached.tsx'
import { Json, Message, Text, Tool, Written } from './message.tsx'
import { Question } from './question.tsx'
import { Badge, durationOf, Failure, LogLink } from './states.tsx'
import { resultOf } from './tool-value.ts'
import type { Chat, Piece, Turn } from './turn.ts'
import { visible } from './visible-text.ts'

/** So near to the end, new text scrolls along. */
const NEAR = 120

interface TranscriptProps {
  readonly label: string
  readonly chat: Chat
  /** Shown before the first message. */
  readonly begin: ReactNode
}

const Earlier = lazy(() => import('./stored-messages.tsx'))

/** The messages of a chat and the replies, as they come, below those that the conversation had before. */
export function Transcript({ label, chat: { conversation, earlier = 0, turns }, begin }: TranscriptProps) {
  const [box, setBox] = useState<HTMLElement | null>(null)
  const isAtEnd = useRef(true)
  const follow = useCallback(() => {
    if (box && isAtEnd.current) box.scrollTop = box.scrollHeight
  }, [box])
  useEffect(follow, [turns, follow])
  const onScroll = () => {
    if (!box) return
    const { scrollHeight, scrollTop, clientHeight } = box
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR
  }
  const last = turns.at(-1)
  return (
    <div className="transcript" ref={setBox} onScroll={onScroll} role="log" aria-label={label} aria-live="off" tabIndex={0}>
      {box && conversation !== undefined && earlier > 0 && (
        <Suspense>
          <Earlier key={conversation} id={conversation} count={earlier} box={box} onResize={follow} />
        </Suspense>
      )}
      {turns.length === 0 && begin}
      {turns.map(turn => (
        <TurnView key={turn.key} turn={turn} isLast={turn === last} />
      ))}
      <p className="visually-hidden" role="status">
        {last ? ENDINGS[last.state] : ''}
      </p>
    </div>
  )
}

/** What a screen reader says when a reply ends. */
const ENDINGS: Readonly<Record<Turn['state'], string>> = {
  open: '',
  completed: 'The reply is complete.',
  failed: 'The reply has failed.',
  cancelled: 'The reply was stopped.',
}

interface TurnProps {
  readonly turn: Turn
  readonly isLast: boolean
}

const TurnView = memo(function TurnView({ turn, isLast }: TurnProps) {
  const { message, parts, pieces, state, start, end, problem } = turn
  // one app opens by itself: that of the last tool of the last turn
  const newest = isLast ? pieces.findLast(({ kind }) => kind === 'tool') : undefined
  return (
    <div className={state === 'open' ? 'turn turn-open' : 'turn'}>
      <Message role="user">
        <Written text={message} />
        {parts.map((part, at) => (
          <Attached key={at} kind={part.type} mediaType={part.media_type} data={part.data} name={part.name} />
        ))}
      </Message>
      <Message role="assistant" facts={start && `${start.provider} / ${start.model}`} more={<TurnState turn={turn} />}>
        {pieces.map((piece, at) => (
          <PieceView key={piece.kind === 'tool' ? piece.id : at} piece={piece} turn={turn} isNewest={piece === newest} />
        ))}
        {state === 'open' && pieces.length === 0 && <p className="muted">Thinking …</p>}
        {problem && <Failure error={Object.assign(new Error(problem.message), problem)} />}
        {end && 'data' in end && end.data !== undefined && <Data value={end.data} />}
        {end && <Usage end={end} request={start?.request_id} />}
      </Message>
    </div>
  )
})

/** The reply as the data of its schema. */
const Data = ({ value }: { readonly value: unknown }) => (
  <div className="stack">
    <span className="muted small">Data of the reply</span>
    <Json value={value === null || typeof value === 'string' ? JSON.stringify(value) : value} label="Data of the reply" />
  </div>
)

/** Whether a question of the turn waits for a person. */
const isAsking = ({ pieces }: Turn) => pieces.some(piece => piece.kind === 'tool' && piece.ask && !piece.result)

function TurnState({ turn }: { readonly turn: Turn }) {
  const { state } = turn
  if (state === 'open') return isAsking(turn) ? <Badge tone="warn">waits for you</Badge> : <Badge tone="accent">answering</Badge>
  if (state === 'failed') return <Badge tone="bad">failed</Badge>
  return state === 'cancelled' ? <Badge tone="warn">stopped</Badge> : null
}

function Usage({ end, request }: { readonly end: NonNullable<Turn['end']>; readonly request: string | undefined }) {
  const { input, output } = end.tokens_used
  return (
    <p className="muted small">
      {input.toLocaleString('en')} tokens in, {output.toLocaleString('en')} out, {durationOf(end.duration_ms)}
      {request !== undefined && (
        <>
          {' · '}
          <LogLink request={request} />
        </>
      )}
    </p>
  )
}

interface PieceProps {
  readonly piece: Piece
  readonly turn: Turn
  readonly isNewest: boolean
}

function PieceView({ piece, turn, isNewest }: PieceProps) {
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
            isOpen={isNewest}
            isTextElsewhere
          />
        </Suspense>
      )}
    </>
  )
}

const ToolResult = lazy(() => import('./tool-result.tsx'))
