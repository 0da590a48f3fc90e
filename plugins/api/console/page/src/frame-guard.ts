import { type RefObject, useCallback, useEffect, useLayoutEffect, useRef } from 'react'
import { flushSync } from 'react-dom'
import { createValue, useValue } from './value.ts'

// A page of a plugin can take the focus whenever it is loaded: no attribute of its frame hinders it, not even `inert` or `display: none`.
// So it is not loaded while a dialog is open, and it is stopped when it takes the focus while the reader is elsewhere.

const covers = createValue(0)

/** Whether a dialog, the list of commands or the menu lies over the page. */
export const useIsCovered = (): boolean => useValue(covers) > 0

/** While this is open, no page of a plugin is loaded. It holds before the browser handles the next key. */
export function useCover(isOpen = true): void {
  useLayoutEffect(() => {
    if (!isOpen) return
    covers.set(covers.get() + 1)
    return () => covers.set(covers.get() - 1)
  }, [isOpen])
}

/** The keys after which the focus can move into a frame. */
const isMove = ({ key }: KeyboardEvent) => key === 'Tab' || key === 'F6'
const MOVE_MS = 500
/** A window without the focus gets no event when a frame takes it. */
const LOOK_MS = 100

interface Guarded {
  readonly frame: RefObject<HTMLIFrameElement | null>
  /** Around the frame. */
  readonly box: RefObject<HTMLElement | null>
  /** The page has taken the focus while the reader was elsewhere. */
  readonly onTaken: () => void
}

/**
 * Watches the way of the reader into the frame: with the pointer, with Tab or F6, or with a button that calls the returned function. What
 * takes the focus without it is a theft. Pointers reach the frame only after they have moved over its place, so that a pointer that rests
 * there is no way into it.
 */
export function useFocusGuard({ frame, box, onTaken }: Guarded): () => void {
  const enter = useRef(() => {})
  const taken = useRef(onTaken)
  taken.current = onTaken
  useEffect(() => {
    const own = frame.current
    const place = box.current
    if (!own || !place) return
    const watch = watchFocus(own, place, () => taken.current())
    enter.current = watch.enter
    return watch.close
  }, [frame, box])
  return useCallback(() => enter.current(), [])
}

function watchFocus(own: HTMLIFrameElement, place: HTMLElement, onTaken: () => void) {
  const listening = new AbortController()
  const { signal } = listening
  let isPointed = false
  let isInside = false
  let moved = -MOVE_MS
  let last: HTMLElement | undefined
  const point = (isOver: boolean) => {
    isPointed = isOver
    own.style.pointerEvents = isOver ? 'auto' : 'none'
  }
  const look = () => {
    if (document.activeElement !== own) isInside = false
    else if (isPointed || performance.now() - moved < MOVE_MS) isInside = true
    else if (!isInside) {
      listening.abort()
      // now, not when React comes to it: each further key would be the page's
      flushSync(onTaken)
      // the browser is still moving the focus, and would go on after this event
      setTimeout(() => last?.isConnected && last.focus({ preventScroll: true }))
    }
  }
  const onFocus = ({ target }: FocusEvent) => {
    if (!(target instanceof HTMLElement) || target === own) return
    last = target
    // Tab has led elsewhere
    moved = -MOVE_MS
    look()
  }
  const onKey = (event: KeyboardEvent) => {
    point(false)
    if (isMove(event)) moved = performance.now()
  }
  const onPress = ({ target }: PointerEvent) => target instanceof Node && !place.contains(target) && point(false)
  point(false)
  last = document.activeElement instanceof HTMLElement ? document.activeElement : undefined
  document.addEventListener('focusin', onFocus, { signal })
  document.addEventListener('keydown', onKey, { capture: true, signal })
  document.addEventListener('pointerdown', onPress, { capture: true, signal })
  place.addEventListener('pointermove', () => point(true), { signal })
  place.addEventListener('pointerdown', () => point(true), { signal })
  place.addEventListener('pointerleave', () => point(false), { signal })
  addEventListener('blur', look, { signal })
  const looking = setInterval(look, LOOK_MS)
  signal.addEventListener('abort', () => clearInterval(looking))
  return {
    enter: () => {
      isInside = true
      own.focus()
    },
    close: () => listening.abort(),
  }
}
