import { useMutation, useQueryClient } from '@tanstack/react-query'
import { useNavigate } from '@tanstack/react-router'
import { client, messageOf } from './api.ts'
import { ErrorLog } from './states.tsx'

/** Starts a conversation with the messages up to one of them. */
export function Fork({ id, messageId, label }: { readonly id: string; readonly messageId?: string; readonly label: string }) {
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
          {messageOf(fork.error)} <ErrorLog error={fork.error} />
        </span>
      )}
    </>
  )
}
