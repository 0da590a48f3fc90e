import { useRouter } from '@tanstack/react-router'
import type { MouseEvent, ReactNode } from 'react'
import { isConsolePath } from './plugin-text.ts'
import { visible } from './visible-text.ts'

interface PageLinkProps {
  /** The address, as a plugin has written it. */
  readonly to: string
  readonly children: ReactNode
}

const hasModifier = ({ button, ctrlKey, metaKey, shiftKey, altKey }: MouseEvent) =>
  button !== 0 || ctrlKey || metaKey || shiftKey || altKey

/** A link of a plugin: only to a page of the console. Every other address is shown as text. */
export function PageLink({ to, children }: PageLinkProps) {
  const { history } = useRouter()
  if (!isConsolePath(to))
    return (
      <span>
        {children}
        {to !== '' && visible(to) !== children && <span className="muted"> ({visible(to)})</span>}
      </span>
    )
  const onClick = (event: MouseEvent) => {
    if (hasModifier(event)) return
    event.preventDefault()
    history.push(to)
  }
  return (
    <a href={to} rel="noreferrer noopener" onClick={onClick}>
      {children}
    </a>
  )
}
