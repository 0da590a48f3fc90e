import { useEffect, useRef } from 'react'
import { createValue } from './value.ts'

/** Something to do, in the palette. */
export interface PageAction {
  readonly name: string
  readonly act: () => unknown
}

/** What can be done on the open page. */
export const pageActions = createValue<readonly PageAction[]>([])

/** Offers actions in the palette as long as the page is open. */
export function usePageActions(actions: readonly PageAction[]): void {
  const latest = useRef(actions)
  latest.current = actions
  const names = actions.map(({ name }) => name).join('\n')
  useEffect(() => {
    const offered = latest.current.map(({ name }) => ({
      name,
      act: () => latest.current.find(action => action.name === name)?.act(),
    }))
    pageActions.set([...pageActions.get(), ...offered])
    return () => pageActions.set(pageActions.get().filter(action => !offered.includes(action)))
  }, [names])
}
