import { type ClipboardEvent, type FormEvent, type KeyboardEvent, type RefObject, useRef } from 'react'
import { AttachButton, AttachedFiles, attachments, useAttach, useBodyLimit } from './attachments.tsx'
import { sendToAll, settings } from './playground-request.ts'
import { prompt } from './prompt.ts'
import { useValue } from './value.ts'

interface ComposerProps {
  readonly isBusy: boolean
  readonly stopLabel: string
  readonly onStop: () => void
}

/** The field for the next message, with its files. */
export function Composer(props: ComposerProps) {
  const { isBusy, stopLabel, onStop } = props
  const text = useValue(prompt)
  const { problem } = useValue(settings)
  const limit = useBodyLimit()
  const attach = useAttach()
  const field = useRef<HTMLTextAreaElement>(null)
  const { submit, onKeyDown, onPaste } = eventsOf(props, field, attach)
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
          onChange={event => prompt.set(event.target.value)}
          onKeyDown={onKeyDown}
          onPaste={onPaste}
        />
        <AttachedFiles limit={limit} />
        <div className="composer-foot">
          <AttachButton />
          {problem === undefined ? (
            <span className="grow only-wide">Enter sends, Shift+Enter starts a line</span>
          ) : (
            <span className="grow bad">{problem}</span>
          )}
          <span className="grow only-narrow" />
          {isBusy ? (
            <button type="button" className="button" onClick={onStop}>
              {stopLabel}
            </button>
          ) : (
            <SendButton isOff={text.trim() === '' || problem !== undefined} />
          )}
        </div>
      </div>
    </form>
  )
}

const SendButton = ({ isOff }: { readonly isOff: boolean }) => (
  <button type="submit" className="button button-primary" disabled={isOff}>
    Send
  </button>
)

/** What the keys, the clipboard and the button do. */
function eventsOf(
  { isBusy, onStop }: ComposerProps,
  field: RefObject<HTMLTextAreaElement | null>,
  attach: ReturnType<typeof useAttach>
) {
  const submit = (event?: FormEvent) => {
    event?.preventDefault()
    const message = prompt.get().trim()
    if (message === '' || isBusy || settings.get().problem !== undefined) return
    const parts = attachments.get().files.map(({ part }) => part)
    prompt.set('')
    attachments.set({ files: [] })
    sendToAll(message, parts)
    field.current?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Escape' && isBusy) onStop()
    if (event.key !== 'Enter' || event.shiftKey || event.nativeEvent.isComposing) return
    event.preventDefault()
    submit()
  }
  const onPaste = (event: ClipboardEvent) => {
    const files = [...event.clipboardData.files]
    if (files.length === 0) return
    event.preventDefault()
    void attach(files)
  }
  return { submit, onKeyDown, onPaste }
}
