import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { type FormEvent, useState } from 'react'
import { client, textIn } from './api.ts'
import { Buttons, Panel } from './parts.tsx'
import { Failure } from './states.tsx'
import { chat, isOpen, type SentPart } from './turn.ts'

type Part = Readonly<Record<string, unknown>>

interface EditProps {
  readonly id: string
  readonly messageId: string
  readonly parts: readonly Part[]
}

/** Changes a message of the user: a copy of the conversation before it goes on with the new text, in the playground. */
export function Edit(props: EditProps) {
  const [isOpened, setOpened] = useState(false)
  return (
    <>
      <button type="button" className="button button-quiet" onClick={() => setOpened(true)}>
        Edit
      </button>
      {isOpened && <EditPanel {...props} onClose={() => setOpened(false)} />}
    </>
  )
}

function EditPanel({ id, messageId, parts, onClose }: EditProps & { readonly onClose: () => void }) {
  const navigate = useNavigate()
  const queries = useQueryClient()
  const edit = useMutation({
    async mutationFn(message: string) {
      if (isOpen(chat.value.get())) throw new Error('A reply in the playground is not complete. Wait for it, or stop it.')
      const path = { id }
      const { conversation } = await client.post('/api/v1/conversations/{id}/fork', { path, body: { message_id: messageId } })
      return { conversation: conversation.conversation_id, message }
    },
    async onSuccess({ conversation, message }) {
      chat.continueConversation(conversation)
      void chat.send({ message, parts: sentParts(parts) })
      onClose()
      await navigate({ to: '/playground', search: { conversation } })
      await queries.invalidateQueries({ queryKey: ['conversations'] })
    },
  })
  const submit = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    edit.mutate(textIn(new FormData(event.currentTarget), 'message'))
  }
  const text = parts.flatMap(part => (part.type === 'text' ? [String(part.text)] : [])).join('\n')
  return (
    <Panel title="Edit the message" onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <label className="field">
          <span>Message</span>
          <textarea className="textarea" name="message" rows={5} defaultValue={text} required autoFocus />
        </label>
        <p className="muted small">
          This conversation stays as it is. A copy of the messages before this one goes on with your text, in the playground.
        </p>
        {edit.error && <Failure error={edit.error} />}
        <Buttons onClose={onClose}>
          <button type="submit" className="button button-primary" disabled={edit.isPending}>
            Send
          </button>
        </Buttons>
      </form>
    </Panel>
  )
}

/** The images and files of a stored message, to send them again. */
const sentParts = (parts: readonly Part[]): SentPart[] =>
  parts.flatMap(({ type, mime_type: mediaType, data, name }) =>
    (type === 'image' || type === 'file') && typeof mediaType === 'string' && typeof data === 'string'
      ? [{ type, media_type: mediaType, data, ...(typeof name === 'string' ? { name } : {}) }]
      : []
  )
