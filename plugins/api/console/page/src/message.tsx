/** @jsxImportSource react */
// Text of messages stays as it was written: many scripts need marks of direction.
import { lazy, type ReactNode, Suspense } from 'react'
import { Badge, durationOf, type Tone } from './states.tsx'
import { visible } from './visible-text.ts'

const Markdown = lazy(() => import('./markdown.tsx'))

/** Text with Markdown. Until its code has arrived, the text itself. */
export function Text({ text, isOfPlugin = false }: { readonly text: string; readonly isOfPlugin?: boolean }) {
  return (
    <Suspense fallback={<div className="text">{text}</div>}>
      <Markdown text={text} isOfPlugin={isOfPlugin} />
    </Suspense>
  )
}

/** A text that stays as it was written. */
export const Written = ({ text }: { readonly text: string }) => <>{text}</>

/** The longest value that is shown at once. */
const LONGEST = 20_000

export function Json({ value, label }: { readonly value: unknown; readonly label: string }) {
  const text = typeof value === 'string' ? value : (JSON.stringify(value, null, 2) ?? String(value))
  return (
    <pre className="json" tabIndex={0} aria-label={label} role="region">
      {visible(text.slice(0, LONGEST), LONGEST)}
      {text.length > LONGEST && `\n… ${text.length - LONGEST} more characters`}
    </pre>
  )
}

export interface ToolView {
  readonly name: string
  readonly state: 'running' | 'done' | 'failed'
  readonly input: unknown
  readonly output?: unknown
  readonly durationMs?: number
}

const TOOL_STATES: Readonly<Record<ToolView['state'], readonly [Tone, string]>> = {
  running: ['accent', 'running'],
  done: ['ok', 'done'],
  failed: ['bad', 'failed'],
}

/** A tool call: its name and state at a glance, arguments and result inside. */
export function Tool({ name, state, input, output, durationMs }: ToolView) {
  const [tone, word] = TOOL_STATES[state]
  return (
    <details className="tool">
      <summary>
        <svg viewBox="0 0 24 24" width="14" height="14" aria-hidden="true" className="icon muted">
          <path d="M14 7l3 3-9 9H5v-3zM13 4h7v7" />
        </svg>
        <code className="grow clip">{visible(name)}</code>
        {durationMs !== undefined && <span className="muted">{durationOf(durationMs)}</span>}
        <Badge tone={tone}>{word}</Badge>
      </summary>
      <div className="tool-body">
        <span className="muted">Arguments</span>
        <Json value={input} label={`Arguments of ${visible(name)}`} />
        {output !== undefined && (
          <>
            <span className="muted">Result</span>
            <Json value={output} label={`Result of ${visible(name)}`} />
          </>
        )}
      </div>
    </details>
  )
}

interface MessageProps {
  readonly role: 'user' | 'assistant' | 'tool' | 'system'
  readonly facts?: ReactNode
  readonly more?: ReactNode
  readonly children: ReactNode
}

const WHO: Readonly<Record<MessageProps['role'], string>> = {
  user: 'You',
  assistant: 'Assistant',
  tool: 'Tool',
  system: 'System',
}

export function Message({ role, facts, more, children }: MessageProps) {
  return (
    <article className={`message message-${role}`}>
      <div className="message-head">
        <span className="message-who">{WHO[role]}</span>
        <span className="muted small">{typeof facts === 'string' ? visible(facts) : facts}</span>
        {more && <span className="message-more">{more}</span>}
      </div>
      <div className="message-body stack">{children}</div>
    </article>
  )
}
