import { useSyncExternalStore } from 'react'
import { createKept, useValue } from './value.ts'

/** `roomy`, or `compact` for more rows in a window. */
export const density = createKept('svc-density', 'roomy')

export const nextDensity = (): void => density.set(density.get() === 'compact' ? 'roomy' : 'compact')

/** Keeps the attribute that the style sheet reads. */
export function applyDensity(): void {
  const apply = () => {
    if (density.get() === 'compact') document.documentElement.setAttribute('data-density', 'compact')
    else document.documentElement.removeAttribute('data-density')
  }
  density.subscribe(apply)
  apply()
}

const HUGE = matchMedia('(min-width: 3200px)')
const followHuge = (listener: () => void) => {
  HUGE.addEventListener('change', listener)
  return () => HUGE.removeEventListener('change', listener)
}

const HEIGHTS = { roomy: [36, 44], compact: [30, 37] } as const

/** The height of a row of a list, in pixels: `--row` in `tokens.css`. */
export function useRowHeight(): number {
  const isHuge = useSyncExternalStore(followHuge, () => HUGE.matches)
  const [usual, huge] = HEIGHTS[useValue(density) === 'compact' ? 'compact' : 'roomy']
  return isHuge ? huge : usual
}
