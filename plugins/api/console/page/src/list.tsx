import { type KeyboardEvent, useEffect, useRef, useState } from 'react'

const SEARCH_MS = 250

interface SearchProps {
  readonly label: string
  readonly value: string | undefined
  /** Called with the text without blanks around it, when the reader pauses. */
  readonly onChange: (text: string) => void
}

/** The search of a list. `/` leads to it. */
export function Search({ label, value = '', onChange }: SearchProps) {
  const [text, setText] = useState(value)
  const change = useRef(onChange)
  change.current = onChange
  useEffect(() => {
    if (text.trim() === value) return
    const timer = setTimeout(() => change.current(text.trim()), SEARCH_MS)
    return () => clearTimeout(timer)
  }, [text, value])
  return (
    <label>
      <span className="visually-hidden">{label}</span>
      <input
        className="input"
        type="search"
        data-search
        placeholder="Search  /"
        value={text}
        onChange={event => setText(event.target.value)}
      />
    </label>
  )
}

/** Arrow keys, Home and End move through a list of links. */
export function moveFocus(event: KeyboardEvent<HTMLElement>) {
  const links = [...event.currentTarget.querySelectorAll<HTMLElement>('a, button')]
  const at = links.indexOf(document.activeElement as HTMLElement)
  const targets: Readonly<Record<string, number>> = {
    ArrowDown: at + 1,
    j: at + 1,
    ArrowUp: at - 1,
    k: at - 1,
    Home: 0,
    End: links.length - 1,
  }
  const target = links[targets[event.key] ?? -1]
  if (!target) return
  event.preventDefault()
  target.focus()
}
