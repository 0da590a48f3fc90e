import { createRequire } from 'node:module'
import type Dagre from '@dagrejs/dagre'

// Libraries that are loaded at their first use, so that a server without workflows does not pay for them.
const require = createRequire(import.meta.url)
const loaded = new Map<string, unknown>()

function late<T>(name: string): T {
  if (!loaded.has(name)) loaded.set(name, require(name))
  return loaded.get(name) as T
}

export const yaml = () => late<typeof import('yaml')>('yaml')
export const cel = () => late<typeof import('@marcbachmann/cel-js')>('@marcbachmann/cel-js')
export const dagre = () => late<typeof Dagre>('@dagrejs/dagre')
