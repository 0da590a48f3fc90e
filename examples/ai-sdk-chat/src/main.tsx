import { useChat } from '@ai-sdk/react'
import { createClient } from '@svc/client'
import { approvalsAreAnswered, createChatTransport } from '@svc/client/ai-sdk'
import type { DynamicToolUIPart, UIMessage } from 'ai'
import { type FormEvent, StrictMode, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'

const transport = createChatTransport({ client: createClient({ url: '/' }) })

/** The messages of this tab, after the page was loaded again. */
const stored = JSON.parse(sessionStorage.getItem('messages') ?? '[]') as UIMessage[]

type Answer = (approved: boolean) => void

function Tool({ part, onAnswer }: { readonly part: DynamicToolUIPart; readonly onAnswer: Answer }) {
  return (
    <p>
      <code>
        {part.toolName} {JSON.stringify(part.input)}
      </code>{' '}
      {part.state === 'output-available' && <output>{JSON.stringify(part.output)}</output>}
      {part.state === 'output-denied' && <output>not allowed</output>}
      {part.state === 'output-error' && <output>{part.errorText}</output>}
      {part.state === 'approval-requested' && (
        <span>
          <button type="button" onClick={() => onAnswer(true)}>
            Allow
          </button>
          <button type="button" onClick={() => onAnswer(false)}>
            Deny
          </button>
        </span>
      )}
    </p>
  )
}

function Message({ message, answerOf }: { readonly message: UIMessage; readonly answerOf: (id: string) => Answer }) {
  return (
    <article data-role={message.role}>
      {message.parts.map((part, at) => {
        if (part.type === 'text') return <p key={at}>{part.text}</p>
        if (part.type === 'dynamic-tool') return <Tool key={at} part={part} onAnswer={answerOf(part.approval?.id ?? '')} />
        return null
      })}
    </article>
  )
}

function Chat() {
  const [text, setText] = useState('')
  const { messages, sendMessage, addToolApprovalResponse, status, stop, error } = useChat({
    // with the id, the transport finds a turn that is still open
    id: 'chat',
    messages: stored,
    resume: true,
    transport,
    sendAutomaticallyWhen: approvalsAreAnswered,
  })
  useEffect(() => sessionStorage.setItem('messages', JSON.stringify(messages)), [messages])
  const send = (event: FormEvent) => {
    event.preventDefault()
    void sendMessage({ text })
    setText('')
  }
  const answerOf = (id: string) => (approved: boolean) => void addToolApprovalResponse({ id, approved })
  return (
    <>
      <h1>Chat</h1>
      <div role="log">
        {messages.map(message => (
          <Message key={message.id} message={message} answerOf={answerOf} />
        ))}
      </div>
      {error && <p role="alert">{error.message}</p>}
      <form onSubmit={send}>
        <textarea aria-label="Message" value={text} onChange={event => setText(event.target.value)} />
        <button type="submit" disabled={status === 'streaming' || status === 'submitted'}>
          Send
        </button>
        <button type="button" onClick={() => void stop()}>
          Stop
        </button>
        <span data-status={status}>{status}</span>
      </form>
    </>
  )
}

createRoot(document.querySelector('#root')!).render(
  <StrictMode>
    <Chat />
  </StrictMode>
)
