import { useQuery } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import type { Schemas } from '@svc/client'
import { type ReactNode, useEffect, useState } from 'react'
import { client } from './api.ts'
import { type AppCall, type AppHost, createAppHost, HEIGHTS, type AppQuestion } from './app-host.ts'
import { CallBadge, type CallResult, isAsking, Outcome } from './call-outcome.tsx'
import { ClosedFrame } from './plugin-frame.tsx'
import { addToPrompt } from './prompt.ts'
import { Failure, Loading } from './states.tsx'
import { useValue } from './value.ts'

interface ToolAppProps {
  readonly tool: string
  readonly input: object
  readonly result: CallResult
}

/** The MCP App of a tool, for one of its results. */
export default function ToolApp({ tool, input, result }: ToolAppProps) {
  const { data, error, refetch } = useQuery({
    // not below `tools`, which is read again after each call
    queryKey: ['tool-app', tool],
    queryFn: ({ signal }) => client.get('/api/v1/tools/{name}/app', { path: { name: tool }, signal }),
    // an open app stays as it is
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: 0,
    retry: false,
  })
  if (data) return <App app={data} tool={tool} input={input} result={result} />
  return error ? <Failure error={error} onRetry={() => void refetch()} /> : <Loading rows={4} />
}

const FRAME = '/console/frames/app.html'
const SHOWN = { availableDisplayModes: ['inline'], containerDimensions: { maxHeight: HEIGHTS.most } }

function App({ app, tool, ...given }: ToolAppProps & { readonly app: Schemas['ToolApp'] }) {
  const [host] = useState(() => createAppHost({ app, ...given }))
  return (
    <section className="tool-app stack" aria-label={`App of ${tool}`}>
      <p className="muted small">
        An app of the MCP server <code>{app.server}</code>. Enter no key or token in it.
      </p>
      <Sized host={host}>
        <ClosedFrame title={`${tool}, an app of ${app.server}`} url={FRAME} connect={host.connect} shown={SHOWN} />
      </Sized>
      <div aria-live="polite">
        <QuestionOfApp host={host} />
      </div>
      <Calls host={host} />
    </section>
  )
}

const Sized = ({ host, children }: { readonly host: AppHost; readonly children: ReactNode }) => (
  <div className="tool-app-frame" style={{ height: useValue(host.height) }}>
    {children}
  </div>
)

const ARMED_MS = 600

/** Buttons that do nothing at first: what appears below the pointer is not pressed by a click that was meant for the app. */
function Armed({ children }: { readonly children: ReactNode }) {
  const [isArmed, setArmed] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => setArmed(true), ARMED_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <fieldset className="plain-fieldset" disabled={!isArmed}>
      {children}
    </fieldset>
  )
}

function QuestionOfApp({ host }: { readonly host: AppHost }) {
  const question = useValue(host.question)
  if (!question) return null
  return (
    <Armed key={question.text}>
      <div className="ask" role="group" aria-label="The app asks">
        {question.kind === 'link' ? <Link question={question} /> : <Message question={question} />}
      </div>
    </Armed>
  )
}

function Link({ question: { text, decide } }: { readonly question: AppQuestion }) {
  const open = () => {
    window.open(text, '_blank', 'noopener,noreferrer')
    decide(true)
  }
  return (
    <>
      <p className="ask-question">The app wants to open an address in a new tab.</p>
      <code className="view-text">{text}</code>
      <Answers yes="Open" onYes={open} onNo={() => decide(false)} />
    </>
  )
}

function Message({ question: { text, decide } }: { readonly question: AppQuestion }) {
  const navigate = useNavigate()
  const take = () => {
    decide(true)
    addToPrompt(text)
    const field = document.getElementById('message')
    if (field) field.focus()
    else void navigate({ to: '/playground' })
  }
  return (
    <>
      <p className="ask-question">The app suggests a message. Nothing is sent until you send it.</p>
      <p className="text view-text">{text}</p>
      <Answers yes="Put it into the prompt" onYes={take} onNo={() => decide(false)} />
    </>
  )
}

interface AnswersProps {
  readonly yes: string
  readonly onYes: () => void
  readonly onNo: () => void
}

const Answers = ({ yes, onYes, onNo }: AnswersProps) => (
  <div className="row">
    <button type="button" className="button button-primary" onClick={onYes}>
      {yes}
    </button>
    <button type="button" className="button" onClick={onNo}>
      Decline
    </button>
  </div>
)

/** The calls of the app. One that asks is open. */
function Calls({ host }: { readonly host: AppHost }) {
  const calls = useValue(host.calls)
  return calls.map(call => <Call key={call.key} call={call} />)
}

function Call({ call: { tool, running } }: { readonly call: AppCall }) {
  const asks = isAsking(running)
  const [isOpen, setOpen] = useState(false)
  return (
    <details className="tool" open={asks || isOpen} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>
        <span className="muted">The app calls</span>
        <code className="grow clip">{tool}</code>
        <CallBadge running={running} />
      </summary>
      <div className="tool-body">
        <Armed key={String(asks)}>
          <Outcome running={running} />
        </Armed>
      </div>
    </details>
  )
}
