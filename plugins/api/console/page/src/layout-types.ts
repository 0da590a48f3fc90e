/** A node as the server draws it. */
export interface DrawnNode {
  readonly id: string
  readonly name: string
  readonly type: string
  readonly edges: readonly { readonly to: string; readonly label: string | null; readonly kind: 'next' | 'catch' }[]
  readonly bodies: readonly { readonly name: string; readonly nodes: readonly DrawnNode[] }[]
}

export interface Box {
  readonly id: string
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

/** An edge on its way around the boxes, and the middle of its label, if it has one. */
export interface Route {
  readonly points: readonly { readonly x: number; readonly y: number }[]
  readonly x: number
  readonly y: number
}

/** The places of the boxes, and the edges in the order of the request. */
export interface Layout {
  readonly boxes: readonly Box[]
  readonly routes: readonly (Route | undefined)[]
}

/** What the worker lays out: boxes with their sizes, frames around the nodes of a body, and edges. */
export interface LayoutRequest {
  readonly boxes: readonly { readonly id: string; readonly width: number; readonly height: number; readonly frame?: string }[]
  readonly frames: readonly { readonly id: string; readonly frame?: string }[]
  readonly edges: readonly DrawnEdge[]
}

export interface DrawnEdge {
  readonly from: string
  readonly to: string
  readonly kind: 'next' | 'catch' | 'body'
  /** Empty without one. */
  readonly label: string
}
