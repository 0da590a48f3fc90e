import { type RefObject, useEffect, useRef } from 'react'
import { useAddress } from './address.tsx'
import { createMedia } from './media.ts'

/** The list, the text and the drawing have place beside each other. */
const useRoomForThree = createMedia('(min-width: 1680px)')

/** Of the pane with the list. */
export const LIST_ID = 'list'

/** Whether the list stands beside the selected item: where there is place for it, or as the address says. */
export function useFold(): readonly [isShown: boolean, show: (isShown: boolean) => void] {
  const [{ list }, change] = useAddress()
  const hasRoom = useRoomForThree()
  const isShown = list === undefined ? hasRoom : list === 'shown'
  return [isShown, next => change({ list: next === hasRoom ? undefined : next ? 'shown' : 'hidden' })]
}

/** Shows and hides the list beside the selected item. A narrow window has a way back instead. */
export function FoldButton({ label }: { readonly label: string }) {
  const [isShown, show] = useFold()
  return (
    <button
      type="button"
      className="button button-quiet fold only-wide"
      aria-label={label}
      title={isShown ? 'Hide the list' : 'Show the list'}
      aria-expanded={isShown}
      aria-controls={LIST_ID}
      onClick={() => show(!isShown)}
    >
      <svg viewBox="0 0 24 24" width="16" height="16" aria-hidden="true" className="icon">
        <path d={isShown ? 'M4 5h16v14H4zM9.500 5v14M6.500 8.500h.5M6.500 11.500h.5' : 'M4 5h16v14H4zM9.500 5v14'} />
      </svg>
    </button>
  )
}

/** A title that takes the focus when it appears and the list with the focus has gone. */
export function useFocusedTitle(): RefObject<HTMLHeadingElement | null> {
  const title = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    const { activeElement: active } = document
    if (active === null || active === document.body || !active.checkVisibility()) title.current?.focus({ preventScroll: true })
  }, [])
  return title
}
