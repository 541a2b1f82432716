declare module "virtual:tokens.css";
declare module "*.module.css" {
  const names: Record<string, string>;
  export default names;
}
