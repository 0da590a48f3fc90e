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

/** The height of a row of a list, in pixels: `--row` in `tokens.css`. */
export const useRowHeight = (): number => (useValue(density) === 'compact' ? 30 : 36)
