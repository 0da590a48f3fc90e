import type { Tool } from '@svc/core/contracts'

/** Whether a tool changes nothing: calling it once more does no harm. */
export const isReading = (tool: Tool | undefined): boolean => tool?.effects.every(effect => effect === 'read') === true
