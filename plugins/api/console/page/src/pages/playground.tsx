import { Link, useNavigate } from '@tanstack/react-router'
import { useEffect } from 'react'
import { Composer } from '../composer.tsx'
import { sendToAll } from '../playground-request.ts'
import { type Search, Settings } from '../playground-settings.tsx'
import { playground, without } from '../router.tsx'
import { Title } from '../states.tsx'
import { Transcript } from '../transcript.tsx'
import { chat, type ChatOfTab, isOpen, secondChat } from '../turn.ts'
import { useValue } from '../value.ts'

export function Playground() {
  const { conversation, compare } = playground.useSearch()
  const isCompared = compare !== undefined
  const first = useValue(chat.value)
  const second = useValue(secondChat.value)
  useEffect(() => {
    if (!isCompared && conversation !== undefined && conversation !== chat.value.get().conversation)
      chat.continueConversation(conversation)
    void chat.continueTurn()
    if (isCompared) void secondChat.continueTurn()
  }, [conversation, isCompared])
  const stop = () => {
    void chat.stop()
    if (isCompared) void secondChat.stop()
  }
  return (
    <div className="split">
      <div className="chat">
        <Head isCompared={isCompared} />
        {isCompared ? (
          <div className="compare">
            <Column name="First chat" of={chat} />
            <Column name="Second chat" of={secondChat} />
          </div>
        ) : (
          <Transcript label="Chat" chat={first} begin={<Begin isContinued={first.conversation !== undefined} />} />
        )}
        <Composer
          isBusy={isOpen(first) || (isCompared && isOpen(second))}
          stopLabel={isCompared ? 'Stop both' : 'Stop'}
          onStop={stop}
        />
      </div>
      <Settings />
    </div>
  )
}

function Head({ isCompared }: { readonly isCompared: boolean }) {
  const first = useValue(chat.value)
  const second = useValue(secondChat.value)
  const navigate = useNavigate()
  const { conversation } = first
  const isEmpty = first.turns.length === 0 && !conversation && second.turns.length === 0
  const begin = () => {
    chat.clear()
    secondChat.clear()
    void navigate({ to: '/playground', search: (before: Search) => without(before, 'conversation'), replace: true })
  }
  return (
    <div className="bar">
      <div className="grow">
        <Title name="Playground">Playground</Title>
      </div>
      {conversation !== undefined && !isCompared && <ToConversation id={conversation} />}
      <button type="button" className="button" onClick={begin} disabled={isOpen(first) || isOpen(second) || isEmpty}>
        New chat
      </button>
    </div>
  )
}

const ToConversation = ({ id }: { readonly id: string }) => (
  <Link className="button button-quiet" to="/conversations" search={{ id }}>
    Conversation
  </Link>
)

/** One of two chats that get the same messages. */
function Column({ name, of }: { readonly name: string; readonly of: ChatOfTab }) {
  const value = useValue(of.value)
  const { conversation } = value
  const isAnswering = isOpen(value)
  return (
    <section className="compare-column" aria-label={name}>
      <div className="compare-head">
        <h2 className="section-title grow">{name}</h2>
        {conversation !== undefined && <ToConversation id={conversation} />}
        {isAnswering && (
          <button type="button" className="button" aria-label={`Stop the ${name.toLowerCase()}`} onClick={() => void of.stop()}>
            Stop
          </button>
        )}
      </div>
      <Transcript
        label={`Messages of the ${name.toLowerCase()}`}
        chat={value}
        begin={<p className="muted">Your message goes to both models.</p>}
      />
    </section>
  )
}

const SUGGESTIONS = ['What can you do?', 'What time is it in Tokyo?', 'Calculate 17 % of 2,340']

function Begin({ isContinued }: { readonly isContinued: boolean }) {
  if (isContinued) return <p className="muted">Your next message continues the conversation.</p>
  return (
    <div className="suggestions">
      <p className="muted">Try the models and tools of this server. For example:</p>
      {SUGGESTIONS.map(message => (
        <button key={message} type="button" className="button suggestion" onClick={() => sendToAll(message)}>
          {message}
        </button>
      ))}
    </div>
  )
}
