export { type Expression, expression, type ExpressionScope } from './expression.ts'
export {
  bodiesOf,
  CONTINUE,
  DURATION_PATTERN,
  durationMs,
  END,
  graphOf,
  isGraph,
  NODE_KEYS,
  nodesWithin,
  ONLY,
  settingsOf,
  startOf,
} from './graph.ts'
export { expressionsIn, type Template, template } from './template.ts'
export { toJson } from './budget.ts'
export {
  type Definition,
  type DefinitionContext,
  type NameKind,
  plainDefinition,
  problemsOf,
  readDefinition,
} from './problems.ts'
export { WORKFLOW_NAME, workflowSchema } from './shape.ts'
export { drawSvg } from './draw-svg.ts'
export { type DrawnNode, drawnNodes, drawTerminal, type GraphState, stateOf } from './drawing.ts'
export { type Read, readYaml, type TextPlace } from './yaml.ts'
