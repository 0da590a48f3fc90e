import type { PlannedPlugin } from '@svc/core/contracts'
import { newValues } from './configured-access.ts'
import {
  errorFormatWords,
  NOTHING,
  pageWords,
  type Proposal,
  requestedAccess,
  routeWords,
  schemeWords,
  UNENFORCED_ACCESS,
} from './proposal-text.ts'

type Planned = Pick<PlannedPlugin, 'access' | 'routes' | 'pages' | 'checks'>

/** The sentences of `svc plugins install`, for a person who plans over HTTP. They follow from the other members of the plan. */
export const plannedAccess = (proposal: Proposal): Planned => {
  const { manifest } = proposal.candidate
  return {
    access: accessIn(proposal),
    routes: [...routeWords(manifest.contributes), ...errorFormatWords(manifest.contributes)],
    pages: pageWords(manifest.contributes),
    checks: schemeWords(manifest),
  }
}

function accessIn({ candidate, isolation, access }: Proposal): PlannedPlugin['access'] {
  const values = Object.entries(newValues(access)).flatMap(([kind, list]) => list.map(value => `${kind} ${value}`))
  const isNew = new Set([...candidate.permissionChange.added, ...values])
  const all = requestedAccess(candidate.permissions, access).map(({ text, isWide, permission, value }) => ({
    text,
    is_wide: isWide,
    is_new: isNew.has(permission) || (value !== undefined && isNew.has(value)),
  }))
  const isFirst = candidate.from === undefined
  if (isolation === 'in-process') all.unshift({ text: UNENFORCED_ACCESS, is_wide: true, is_new: isFirst })
  if (all.length === 0) return [{ text: NOTHING, is_wide: false, is_new: isFirst }]
  return [...all.filter(item => item.is_wide), ...all.filter(item => !item.is_wide)]
}
