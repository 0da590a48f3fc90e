import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import type { ReplyOf } from '@svc/client'
import { useState } from 'react'
import { client, textIn } from './api.ts'
import { Fork } from './conversation-fork.tsx'
import { Back } from './list.tsx'
import { More } from './more.tsx'
import { Buttons, Panel } from './parts.tsx'
import { without } from './router.tsx'
import { Count, Failure } from './states.tsx'
import { visible } from './visible-text.ts'

type Read = ReplyOf<'get', '/api/v1/conversations/{id}'>

/** A title is text of a model or of a reader. */
export const titleOf = ({ title }: { readonly title?: string | null }) =>
  typeof title === 'string' ? visible(title) : 'Without a title'

type Action = 'rename' | 'delete' | 'export'

/** The title of a conversation, and what can be done with it. */
export function ReaderHead({ conversation }: { readonly conversation: Read }) {
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
      <Link className="button" to="/traces" search={{ conversation: id }}>
        Traces
      </Link>
      <Link className="button" to="/playground" search={{ conversation: id }}>
        Continue
      </Link>
      <Fork id={id} label="Fork" />
      <More
        label="More actions"
        items={[
          { name: 'Rename', act: () => setAction('rename') },
          { name: 'Export', act: () => setAction('export') },
          { name: 'Delete', act: () => setAction('delete'), isBad: true },
        ]}
      />
      {action === 'rename' && <Rename conversation={conversation} onClose={close} />}
      {action === 'delete' && <Delete conversation={conversation} onClose={close} />}
      {action === 'export' && <Export id={id} onClose={close} />}
    </div>
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
