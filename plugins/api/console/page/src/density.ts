import { createMedia } from './media.ts'
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

const useHuge = createMedia('(min-width: 3200px)')

const HEIGHTS = { roomy: [36, 44], compact: [30, 37] } as const

/** The height of a row of a list, in pixels: `--row` in `tokens.css`. */
export function useRowHeight(): number {
  const isHuge = useHuge()
  const [usual, huge] = HEIGHTS[useValue(density) === 'compact' ? 'compact' : 'roomy']
  return isHuge ? huge : usual
}
