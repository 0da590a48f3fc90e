// The JSX of the console replaces hidden characters in each text that a page shows. Names of tools, servers and plugins come from
// outside, and one place that forgets to replace them would be enough. Texts that stay as they were written, such as messages, are in
// files that begin with the pragma of the JSX of React.
import type { ElementType, Key, ReactElement } from 'react'
import { jsx as create, jsxs as createMany } from 'react/jsx-runtime'
import { shown } from '../visible-text.ts'

export { Fragment, type JSX } from 'react/jsx-runtime'

/** Attributes that browsers and screen readers show. */
const TEXTS = ['title', 'alt', 'placeholder', 'aria-label', 'aria-description', 'aria-valuetext'] as const

function clean(child: unknown): unknown {
  if (typeof child === 'string') return shown(child)
  return Array.isArray(child) ? child.map(clean) : child
}

function cleaned(props: object): object {
  const given = props as Record<string, unknown>
  const result = { ...given }
  if ('children' in given) result.children = clean(given.children)
  for (const name of TEXTS) if (typeof given[name] === 'string') result[name] = shown(given[name])
  return result
}

export const jsx = (type: ElementType, props: object, key?: Key): ReactElement => create(type, cleaned(props), key)
export const jsxs = (type: ElementType, props: object, key?: Key): ReactElement => createMany(type, cleaned(props), key)
